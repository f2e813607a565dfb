"""Labels: reads them from cells of tables, predicts them from logits, scores them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bertie.data.rows.header import is_number
from bertie.errors import InputError
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.labels import known_labels, matthews_of, scores_of_counts
from bertie.tasks.probabilities import rounded, softmax
from bertie.tasks.task import Answer, is_empty

SHOWN = 10  # labels in a sentence
NOTHING = "(none)"


def label_of(cell: Any, name: str = "label") -> str:
    """Without surrounding white space, and 1.0 as 1, since tables turn such labels into numbers."""
    if is_empty(cell):
        raise InputError(f"the {name} is empty")
    if isinstance(cell, list | tuple | Mapping):
        several = "; for several per text give `multi`" if name == "label" else ""
        raise InputError(f"the {name} is {type(cell).__name__}, not one label{several}")
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Each once; numbers by value, words by letter."""
    found = set(labels)
    if all(map(is_number, found)):
        return tuple(sorted(found, key=lambda label: (float(label), label)))
    return tuple(sorted(found))


def at_least_two(labels: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Refuses training rows that all have the same label."""
    if not labels:
        raise InputError(f"no row has a {name}", hint=f"is it the right column, with one {name} per row?")
    if len(labels) == 1:
        raise InputError(f"every row has the {name} {labels[0]!r}", hint="at least two are needed")
    return labels


def known(label: str, labels: Sequence[str], name: str = "label") -> str:
    if label not in labels:
        raise InputError(f"the {name} {label!r} is not in the training data, which has {listed(labels)}")
    return label


def listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - SHOWN:,} more" if len(labels) > SHOWN else ""
    return ", ".join(labels[:SHOWN]) + more


def one_of(labels: Sequence[str], logits: np.ndarray) -> Answer:
    shares = softmax(logits)
    best = int(shares.argmax())
    probabilities = {label: rounded(share) for label, share in zip(labels, shares, strict=True)}
    return {"label": labels[best], "probability": rounded(shares[best]), "probabilities": probabilities}


def label_error(answer: Answer, gold: str) -> float:
    """How improbable the right label was, where another was predicted."""
    return 0.0 if answer["label"] == gold else 1 - answer["probabilities"][gold]


def positive_of(labels: Sequence[str]) -> str | None:
    """The label that the F1 of `one_label_scores` is about: the second of two."""
    return labels[1] if len(labels) == 2 else None


def one_label_scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """F1 is that of the second of two labels; of more labels it is their mean."""
    return one_label_resampling(gold, predicted, labels).score(np.arange(len(gold)))


def one_label_resampling(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> Resampling:
    """The metrics of `one_label_scores`, which all follow from how often each pair of labels occurs."""
    place = {label: number for number, label in enumerate(known_labels(gold, predicted))}
    size = len(place)
    pairs = [place[one] * size + place[other] for one, other in zip(gold, predicted, strict=True)]
    cells = np.array(pairs, np.int64)  # [N]
    positive = positive_of(labels)
    second = None if positive is None else place.get(positive)

    def score(numbers: np.ndarray) -> dict[str, float]:
        counts = np.bincount(cells[numbers], minlength=size**2).reshape(size, size)
        by_gold, by_predicted = counts.sum(1), counts.sum(0)
        scores = scores_of_counts(np.diag(counts), by_predicted, by_gold)["f1"]  # [K]
        macro = float(scores[by_gold + by_predicted > 0].mean()) if len(numbers) else 0.0
        single = macro if positive is None else 0.0 if second is None else float(scores[second])
        share = float(np.trace(counts)) / max(1, len(numbers))
        return {"accuracy": share, "matthews": matthews_of(counts), "f1": single, "macro_f1": macro}

    return Resampling(len(gold), score)
