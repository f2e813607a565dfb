"""The labels of a task: cells of people's tables enter, labels leave; logits enter, the label that they tell leaves."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bertie.data.rows.header import is_number
from bertie.errors import InputError
from bertie.tasks.metrics.labels import accuracy, f1, macro_f1, matthews
from bertie.tasks.probabilities import rounded, softmax
from bertie.tasks.task import Answer, is_empty

SHOWN = 10  # labels in a sentence


def label_of(cell: Any, name: str = "label") -> str:
    """Without white space around it, and 1.0 as 1, since tables make numbers of such labels."""
    if is_empty(cell):
        raise InputError(f"the {name} is empty")
    if isinstance(cell, list | tuple | Mapping):
        raise InputError(f"the {name} is {type(cell).__name__}, not one label")
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Each once; numbers in their order, words in theirs."""
    found = set(labels)
    if all(map(is_number, found)):
        return tuple(sorted(found, key=lambda label: (float(label), label)))
    return tuple(sorted(found))


def at_least_two(labels: tuple[str, ...], name: str) -> tuple[str, ...]:
    """What training rows have; one alone teaches nothing."""
    if not labels:
        raise InputError(f"no row has a {name}", hint="is the right column named?")
    if len(labels) == 1:
        raise InputError(f"every row has the {name} {labels[0]!r}", hint="there must be two to learn a difference")
    return labels


def known(label: str, labels: Sequence[str], name: str = "label") -> str:
    if label not in labels:
        raise InputError(f"the {name} {label!r} is not among those of the training data")
    return label


def listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - SHOWN:,} more" if len(labels) > SHOWN else ""
    return ", ".join(labels[:SHOWN]) + more


def one_of(labels: Sequence[str], logits: np.ndarray) -> Answer:
    shares = softmax(logits)
    best = int(shares.argmax())
    probabilities = {label: rounded(share) for label, share in zip(labels, shares, strict=True)}
    return {"label": labels[best], "probability": rounded(shares[best]), "probabilities": probabilities}


def doubt(answer: Answer, gold: str) -> float:
    """How little was thought of the right label, where another was told."""
    return 0.0 if answer["label"] == gold else 1 - answer["probabilities"][gold]


def one_label_scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """F1 is that of the second of two labels; of more labels it is their mean."""
    macro = macro_f1(gold, predicted)
    single = f1(gold, predicted, labels[1]) if len(labels) == 2 else macro
    alike = {"accuracy": accuracy(gold, predicted), "matthews": matthews(gold, predicted)}
    return {**alike, "f1": single, "macro_f1": macro}
