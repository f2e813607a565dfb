"""Scores labels: one for each example, or several as rows of 0 and 1.

Axes: N examples, K labels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Labels = Sequence[Any] | np.ndarray
Rows = Sequence[Sequence[float]] | np.ndarray  # [N, K]


def accuracy(gold: Labels, predicted: Labels) -> float:
    correct = [one == other for one, other in zip(gold, predicted, strict=True)]
    return float(np.mean(correct)) if correct else 0.0


def known_labels(gold: Labels, predicted: Labels) -> list[Any]:
    """All labels that occur, in order."""
    return sorted({*gold, *predicted})


def confusion(gold: Labels, predicted: Labels, labels: Sequence[Any] | None = None) -> np.ndarray:
    """[K, K] counts: a row is a gold label, a column a predicted one."""
    labels = known_labels(gold, predicted) if labels is None else labels
    place = {label: number for number, label in enumerate(labels)}
    cells = [place[one] * len(place) + place[other] for one, other in zip(gold, predicted, strict=True)]
    counts = np.bincount(np.array(cells, dtype=np.int64), minlength=len(place) ** 2)
    return counts.reshape(len(place), len(place))


def label_scores(gold: Labels, predicted: Labels, labels: Sequence[Any] | None = None) -> dict[Any, dict[str, float]]:
    """Precision, recall, F1 and support of each label."""
    labels = known_labels(gold, predicted) if labels is None else labels
    counts = confusion(gold, predicted, labels)
    columns = scores_of_counts(np.diag(counts), counts.sum(0), counts.sum(1))
    return {label: {name: float(column[k]) for name, column in columns.items()} for k, label in enumerate(labels)}


def macro_f1(gold: Labels, predicted: Labels) -> float:
    """The mean of the labels' F1, over all labels that occur in gold or predictions."""
    return _mean([scores["f1"] for scores in label_scores(gold, predicted).values()])


def micro_f1(gold: Labels, predicted: Labels) -> float:
    """With one label for each example this is the accuracy."""
    return accuracy(gold, predicted)


def weighted_f1(gold: Labels, predicted: Labels) -> float:
    """The mean of the labels' F1, each weighted by how often the label is gold."""
    every = label_scores(gold, predicted).values()
    total = sum(scores["support"] for scores in every)
    return sum(scores["f1"] * scores["support"] for scores in every) / total if total else 0.0


def binary_scores(gold: Labels, predicted: Labels, positive: Any | None = None) -> dict[str, float]:
    """Precision, recall and F1 of one label; unless it is given, of the second of two."""
    if positive is None:
        labels = known_labels(gold, predicted)
        if len(labels) != 2:
            raise ValueError(f"name the positive label: {labels} are not two")
        positive = labels[1]
    tp, num_predicted, num_gold = (
        sum(one == positive == other for one, other in zip(gold, predicted, strict=True)),
        sum(other == positive for other in predicted),
        sum(one == positive for one in gold),
    )
    return {name: float(value) for name, value in scores_of_counts(tp, num_predicted, num_gold).items()}


def f1(gold: Labels, predicted: Labels, positive: Any | None = None) -> float:
    return binary_scores(gold, predicted, positive)["f1"]


def matthews(gold: Labels, predicted: Labels) -> float:
    """The correlation of two labellings, for any number of labels. Gorodkin, 2004."""
    return matthews_of(confusion(gold, predicted))


def matthews_of(counts: np.ndarray) -> float:
    """From [K, K] counts as `confusion` gives them."""
    counts = counts.astype(np.float64)
    total, by_gold, by_predicted = counts.sum(), counts.sum(1), counts.sum(0)
    covariance = np.trace(counts) * total - by_gold @ by_predicted
    spread = (total**2 - by_gold @ by_gold) * (total**2 - by_predicted @ by_predicted)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0


def scores_of_counts(correct: Any, predicted: Any, gold: Any) -> dict[str, np.ndarray]:
    """Precision, recall, F1 and support from counts of any shape; where there was nothing, 0."""
    correct, predicted, gold = (np.asarray(counts, dtype=np.float64) for counts in (correct, predicted, gold))
    return {
        "precision": correct / np.maximum(predicted, 1),
        "recall": correct / np.maximum(gold, 1),
        "f1": 2 * correct / np.maximum(predicted + gold, 1),
        "support": gold,
    }


# --- several labels for each example


def multi_label_scores(gold: Rows, predicted: Rows) -> dict[str, float]:
    """Rows [N, K] of 0 and 1. `exact_match`: the share of examples with all their labels right."""
    gold_rows, predicted_rows = _two(gold, predicted, np.bool_)
    correct = gold_rows & predicted_rows
    micro = scores_of_counts(correct.sum(), predicted_rows.sum(), gold_rows.sum())
    by_label = scores_of_counts(correct.sum(0), predicted_rows.sum(0), gold_rows.sum(0))
    return {
        "micro_f1": float(micro["f1"]),
        "macro_f1": _mean(by_label["f1"].tolist()),
        "exact_match": _mean((gold_rows == predicted_rows).all(1).tolist()),
        "precision": float(micro["precision"]),
        "recall": float(micro["recall"]),
    }


def tune_thresholds(scores: Rows, gold: Rows, default: float = 0.5) -> list[float]:
    """For each label the threshold with the best F1, where a score of at least the threshold predicts the label.

    It lies halfway between two scores. Among equally good ones the nearest to the default is taken, and the default
    itself for a label that is never gold.
    """
    columns, targets = _two(scores, gold, np.float64)
    return [_best_threshold(column, target > 0.5, default) for column, target in zip(columns.T, targets.T, strict=True)]


def _best_threshold(scores: np.ndarray, gold: np.ndarray, default: float) -> float:
    """[N] and [N] bool."""
    if not gold.any():
        return default
    order = np.argsort(-scores, kind="stable")
    scores, gold = scores[order], gold[order]
    # Of equal scores only the last can be where the accepted ones end.
    ends = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))
    values = scores_of_counts(np.cumsum(gold)[ends], ends + 1, gold.sum())["f1"]
    lowest, next_lower = scores[ends], np.append(scores[ends[:-1] + 1], -np.inf)
    halfway = np.where(np.isfinite(next_lower), (lowest + next_lower) / 2, np.minimum(lowest, default))
    thresholds = np.where(halfway > next_lower, halfway, lowest)
    best = np.flatnonzero(values == values.max())
    return float(thresholds[best[np.argmin(np.abs(thresholds[best] - default))]])


def _two(first: Rows, second: Rows, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    one: np.ndarray = np.asarray(first, dtype=dtype)
    other: np.ndarray = np.asarray(second, dtype=dtype)
    if one.ndim != 2 or one.shape != other.shape:
        raise ValueError(f"rows of shape {one.shape} and {other.shape} do not belong together")
    return one, other


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
