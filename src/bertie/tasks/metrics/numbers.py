"""Correlations and errors of numbers."""

from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray


def pearson(gold: Numbers, predicted: Numbers) -> float:
    first, second = _two(gold, predicted)
    return _correlation(first, second)


def spearman(gold: Numbers, predicted: Numbers) -> float:
    """Pearson's correlation of the ranks; equal numbers share the mean of their ranks."""
    first, second = _two(gold, predicted)
    return _correlation(mean_ranks(first), mean_ranks(second))


def mean_squared_error(gold: Numbers, predicted: Numbers) -> float:
    first, second = _two(gold, predicted)
    return float(np.mean((first - second) ** 2)) if len(first) else 0.0


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """[N] from 1."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    if not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    # Scaled before they are multiplied, so that the squares of very small numbers are not lost.
    first, second = (centred / np.abs(centred).max() for centred in (first - first.mean(), second - second.mean()))
    first, second = first / np.linalg.norm(first), second / np.linalg.norm(second)
    return float(np.clip(first @ second, -1.0, 1.0))


def _two(gold: Numbers, predicted: Numbers) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"numbers of shape {first.shape} and {second.shape} do not belong together")
    return first, second
