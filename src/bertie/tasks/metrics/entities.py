"""Scores the spans that tags mark, as `seqeval` does.

A predicted span is right where its label and both its ends are. By default tags are read as `conlleval` reads them;
with a scheme only spans that are well formed in it count, which is the strict mode.

Axes: N sentences.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bertie.tasks.metrics.labels import scores_of_counts
from bertie.text.tag_schemes import SchemeName, Span, spans_of, strict_spans_of

Tagged = Sequence[Sequence[str]]


def entity_scores(gold: Tagged, predicted: Tagged, scheme: SchemeName | None = None) -> dict[str, float]:
    """Precision, recall and F1 over all spans, the mean of the labels' F1, and the accuracy of single tags."""
    total = scores_of_counts(*entity_counts(gold, predicted, scheme).sum(0))
    by_label = entity_scores_by_label(gold, predicted, scheme)
    return {
        **{name: float(total[name]) for name in ("precision", "recall", "f1")},
        "macro_f1": float(np.mean([scores["f1"] for scores in by_label.values()])) if by_label else 0.0,
        "accuracy": token_accuracy(gold, predicted),
    }


def entity_scores_by_label(
    gold: Tagged, predicted: Tagged, scheme: SchemeName | None = None
) -> dict[str, dict[str, float]]:
    """Precision, recall, F1 and support of each label that occurs in gold or predictions, in order."""
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for gold_spans, predicted_spans in _pairs(gold, predicted, scheme):
        wanted.update(span.label for span in gold_spans)
        found.update(span.label for span in predicted_spans)
        correct.update(span.label for span in gold_spans & predicted_spans)
    scores = {
        label: scores_of_counts(correct[label], found[label], wanted[label]) for label in sorted({*wanted, *found})
    }
    return {label: {name: float(value) for name, value in values.items()} for label, values in scores.items()}


def entity_counts(gold: Tagged, predicted: Tagged, scheme: SchemeName | None = None) -> np.ndarray:
    """[N, 3] spans of each sentence that are right, that were predicted, that are gold.

    Their sums give F1, so `intervals.interval_of_sums(counts, f1_of_sums)` is its interval.
    """
    counts = [
        (len(gold_spans & predicted_spans), len(predicted_spans), len(gold_spans))
        for gold_spans, predicted_spans in _pairs(gold, predicted, scheme)
    ]
    return np.array(counts, dtype=np.int64).reshape(-1, 3)


def f1_of_sums(sums: np.ndarray) -> np.ndarray:
    """[..., 3] as `entity_counts` -> [...]"""
    return scores_of_counts(sums[..., 0], sums[..., 1], sums[..., 2])["f1"]


def token_accuracy(gold: Tagged, predicted: Tagged) -> float:
    """The share of words with the right tag, for labels that mark no spans too."""
    right = total = 0
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        right += sum(one == other for one, other in zip(gold_tags, predicted_tags, strict=True))
        total += len(gold_tags)
    return right / total if total else 0.0


def _pairs(gold: Tagged, predicted: Tagged, scheme: SchemeName | None) -> list[tuple[set[Span], set[Span]]]:
    pairs = []
    for number, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True)):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(f"sentence {number} has {len(gold_tags)} words but {len(predicted_tags)} predicted tags")
        both = (gold_tags, predicted_tags)
        one, other = (set(spans_of(tags) if scheme is None else strict_spans_of(tags, scheme)) for tags in both)
        pairs.append((one, other))
    return pairs
