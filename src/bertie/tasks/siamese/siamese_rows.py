"""The rows that a siamese encoder learns from: which kind of rows a set of columns gives, and what can be learned from
it."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NamedTuple

import numpy as np

from bertie.data.rows.header import is_number
from bertie.data.rows.rows import Rows, spread_numbers
from bertie.errors import InputError, SpecError
from bertie.tasks.classification import LABEL, OTHER, TEXT
from bertie.tasks.label_sets import label_of, sorted_labels
from bertie.tasks.similarity import SCORE
from bertie.tasks.task import Values, is_empty

RowKind = Literal["scored", "labelled", "triplets", "pairs", "texts"]
Criterion = Literal["cosine", "cosent", "softmax", "ranking", "triplet", "simcse"]

ROLES: dict[str, Sequence[str]] = {
    "text": ("text", "anchor", *TEXT[1:]),
    "other": ("other", "positive", "passage", *OTHER[1:]),
    "negative": ("negative", "hard_negative", "neg", "text3", "sentence3"),
    "score": ("score", "similarity", "relatedness", "rating"),
    "label": LABEL,
}
TEXTS = ("text", "other", "negative")
SAMPLE = 1000  # rows that are looked at


def roles_in(rows: Rows) -> Mapping[str, Sequence[str]]:
    """A column with the name of a label or a target is a score where it has numbers with a fraction."""
    shared = {name for name in SCORE if name in LABEL}
    found = [column for column in rows.columns if column.lower() in shared and _has_fractions(rows, column)]
    labels = [name for name in LABEL if name not in {column.lower() for column in found}]
    return {**ROLES, "score": (*ROLES["score"], *found), "label": labels}


def _has_fractions(rows: Rows, column: str) -> bool:
    labels = set[str]()
    for number in spread_numbers(rows.num_rows, SAMPLE):
        with suppress(InputError):  # reported when the row is used
            labels.add(label_of(rows.row(number).values.get(column)))
    return fraction_of(labels) is not None


def fraction_of(labels: Collection[str]) -> str | None:
    """The first that is not a whole number, where all are numbers."""
    if not all(map(is_number, labels)):
        return None
    return next((label for label in sorted_labels(labels) if not float(label).is_integer()), None)


# The richest first: a row is of the first kind that it has every role of.
KINDS: dict[RowKind, tuple[str, ...]] = {
    "scored": ("text", "other", "score"),
    "labelled": ("text", "other", "label"),
    "triplets": ("text", "other", "negative"),
    "pairs": ("text", "other"),
    "texts": ("text",),
}
USUAL: dict[RowKind, Criterion] = {
    "scored": "cosine",
    "labelled": "softmax",
    "triplets": "ranking",
    "pairs": "ranking",
    "texts": "simcse",
}
MAIN: dict[RowKind, str] = {
    "scored": "spearman",
    "labelled": "accuracy",
    "triplets": "triplet_accuracy",
    "pairs": "mrr",
}


@dataclass(frozen=True)
class CriterionFacts:
    """What a criterion needs, and its goal in words."""

    roles: tuple[str, ...]  # that every row must have
    goal: str
    contrastive: bool = False  # whether all rows of a step are compared with each other
    optional: tuple[str, ...] = ()  # roles that are used where rows have them


CRITERIA: dict[Criterion, CriterionFacts] = {
    "cosine": CriterionFacts(KINDS["scored"], "the cosine of two texts should equal their score"),
    "cosent": CriterionFacts(KINDS["scored"], "cosines should have the order of the scores", True),
    "softmax": CriterionFacts(KINDS["labelled"], "two vectors and their difference should predict the label"),
    "ranking": CriterionFacts(
        KINDS["pairs"], "of all texts in a step, the second text of the row should be the nearest", True, ("negative",)
    ),
    "triplet": CriterionFacts(KINDS["triplets"], "the second text should be nearer than the third"),
    "simcse": CriterionFacts(KINDS["texts"], "a text should be nearest to itself under another dropout", True),
}


class Gold(NamedTuple):
    """The target of a row: a score, a label, or the text that belongs to the first."""

    kind: RowKind
    value: float | str

    def __str__(self) -> str:
        return f"{self.value:.4g}" if isinstance(self.value, float) else self.value


def kind_of(roles: Collection[str]) -> RowKind:
    return next((kind for kind, needed in KINDS.items() if set(needed) <= set(roles)), "texts")


def held_out_kind(roles: Collection[str], rows: Iterable[Values]) -> RowKind:
    """What held-out rows measure; `roles` has no label that was not learned. Third texts count if every row has one.

    Rows whose labels were not learned count as pairs that belong together. Where labels differ this cannot be
    right, and every figure would be wrong.
    """
    kind = kind_of(roles)
    if kind == "texts":
        hint = "give pairs of texts, if possible with scores"
        raise InputError("single texts cannot measure how good vectors are", hint=hint)
    if kind not in ("pairs", "triplets"):
        return kind
    labels = set[str]()
    for values in rows:
        if is_empty(values.get("negative")):
            kind = "pairs"
        with suppress(InputError):  # a row without a label
            labels.add(label_of(values.get("label")))
        if len(labels) > 1:
            one, other = sorted(labels)
            raise InputError(
                f"the model did not learn labels, and the rows have {one!r} and {other!r}: pairs that do not belong "
                "together would count as right answers",
                hint="give only pairs that belong together, or read the labels as scores with `column` score=NAME "
                "if they are numbers, or use a model that learned labels",
            )
    return kind


def chosen(criterion: Criterion | None, roles: Collection[str]) -> Criterion:
    """The criterion that was named, if the rows have what it learns from; else the usual one for such rows."""
    if criterion is None:
        return USUAL[kind_of(roles)]
    if missing := [role for role in CRITERIA[criterion].roles if role not in roles]:
        needed = ", ".join(CRITERIA[criterion].roles)
        what = f"{criterion} learns from rows of {needed}; no row has a {missing[0]}"
        raise InputError(what, hint=f"name the column with `column` {missing[0]}=NAME, or choose another `loss`")
    return criterion


def check_loss(loss: str | None) -> str | None:
    if loss is not None and loss not in CRITERIA:
        nearest = get_close_matches(loss, CRITERIA, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(CRITERIA)}"
        raise SpecError(f"there is no `loss` {loss!r}", hint=hint)
    return loss


def token_digest(ids: np.ndarray) -> int:
    """The same for the same tokens."""
    return int.from_bytes(hashlib.blake2b(ids.astype(np.int64).tobytes(), digest_size=8).digest(), signed=True)
