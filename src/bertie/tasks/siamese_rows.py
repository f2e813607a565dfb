"""The rows that a siamese encoder learns from: the roles that a row has enter, its kind leaves, and what can be learned
from rows of that kind."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bertie.errors import InputError
from bertie.tasks.classification import LABEL, OTHER, TEXT
from bertie.tasks.label_sets import label_of
from bertie.tasks.task import Values, is_empty

RowKind = Literal["scored", "labelled", "triplets", "pairs", "texts"]
Criterion = Literal["cosine", "cosent", "softmax", "ranking", "triplet", "simcse"]

ROLES = {
    "text": ("text", "anchor", *TEXT[1:]),
    "other": ("other", "positive", "passage", *OTHER[1:]),
    "negative": ("negative", "hard_negative", "neg", "text3", "sentence3"),
    "score": ("score", "similarity", "relatedness", "rating"),
    "label": LABEL,
}
TEXTS = ("text", "other", "negative")

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
class Way:
    """What a criterion asks for."""

    roles: tuple[str, ...]  # that every row must have
    told: str
    together: bool = False  # whether all rows of a step are compared with each other
    optional: tuple[str, ...] = ()  # roles that teach, too, where rows have them


WAYS: dict[Criterion, Way] = {
    "cosine": Way(KINDS["scored"], "the cosine of two texts is to be their score"),
    "cosent": Way(KINDS["scored"], "cosines are to have the order of the scores", True),
    "softmax": Way(KINDS["labelled"], "two vectors and their difference are to tell the label"),
    "ranking": Way(
        KINDS["pairs"], "of all texts in a step the second one of its row is to be the nearest", True, ("negative",)
    ),
    "triplet": Way(KINDS["triplets"], "the second text is to be nearer than the third"),
    "simcse": Way(KINDS["texts"], "a text is to be the nearest to itself, under another dropout", True),
}


class Gold(NamedTuple):
    """What a row says of its texts: a score, a label, or which text belongs to the first."""

    kind: RowKind
    value: float | str

    def __str__(self) -> str:
        return f"{self.value:.4g}" if isinstance(self.value, float) else self.value


def kind_of(roles: Collection[str]) -> RowKind:
    return next((kind for kind, needed in KINDS.items() if set(needed) <= set(roles)), "texts")


def held_out_kind(roles: Collection[str], rows: Iterable[Values]) -> RowKind:
    """What held-out rows measure; `roles` has no label that was not learned. Third texts count where every row has one.

    Rows whose labels were not learned are pairs that belong together. Where labels differ that cannot be so, and every
    figure would be wrong.
    """
    kind = kind_of(roles)
    if kind == "texts":
        hint = "give pairs of texts, best of all with scores"
        raise InputError("single texts say nothing of how good vectors are", hint=hint)
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
                hint="give only pairs that belong together, or take the labels for scores with --column score=NAME "
                "where they are numbers, or use a model that learned labels",
            )
    return kind


def chosen(criterion: Criterion | None, roles: Collection[str]) -> Criterion:
    """The one that is named, where the rows have what it learns from; else what is usual for such rows."""
    if criterion is None:
        return USUAL[kind_of(roles)]
    if missing := [role for role in WAYS[criterion].roles if role not in roles]:
        needed = ", ".join(WAYS[criterion].roles)
        what = f"{criterion} learns from rows of {needed}; no row has a {missing[0]}"
        raise InputError(what, hint=f"name the column with --column {missing[0]}=NAME, or choose another --loss")
    return criterion
