"""Turns scores of examples into an interval for the score of all: percentile bootstrap, and Wilson's for shares.

Examples are drawn again with replacement; the same seed draws the same ones. Two systems on the same examples are
compared on the same draws, so that what is hard for both does not count as noise.

Axes: N examples, R rounds, S figures that are summed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

ROUNDS = 1000
LEVEL = 0.95
MOST_DRAWN = 2_000_000  # examples at a time; bounds the memory


@dataclass(frozen=True)
class Interval:
    value: float  # of all examples, as they are
    low: float
    high: float

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Resampling:
    """The metrics of things drawn with replacement: `score` takes their numbers [n]."""

    size: int
    score: Callable[[np.ndarray], dict[str, float]]
    unit: str = "rows"  # what is drawn


def interval_of_mean(
    values: Sequence[float] | np.ndarray, *, seed: int = 0, rounds: int = ROUNDS, level: float = LEVEL
) -> Interval:
    """For a score that is the mean over examples. The difference of two systems: give their differences."""
    column = np.asarray(values, dtype=np.float64)[:, None]
    count = max(len(column), 1)
    return interval_of_sums(column, lambda sums: sums[..., 0] / count, seed=seed, rounds=rounds, level=level)


def interval_of_sums(
    figures: np.ndarray,
    score: Callable[[np.ndarray], np.ndarray],
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
    level: float = LEVEL,
) -> Interval:
    """For a score that follows from sums over examples, as micro F1 does: `score` takes sums [..., S] to values [...].

    The difference of two systems: give their figures [N, S] side by side and a score that subtracts.
    """
    figures = np.asarray(figures, dtype=np.float64)  # [N, S]
    parts = [score(figures[drawn].sum(1)) for drawn in draws(len(figures), seed, rounds)]
    return _interval(float(score(figures.sum(0))), np.concatenate(parts), level)


def interval_of_metric(
    metric: Callable[..., float],
    *columns: Sequence[Any],
    seed: int = 0,
    rounds: int = ROUNDS,
    level: float = LEVEL,
) -> Interval:
    """For any metric of columns of examples: `interval_of_metric(matthews, gold, predicted)`."""
    size = len(columns[0])
    drawn_columns = (
        [[column[number] for number in numbers] for column in columns]
        for drawn in draws(size, seed, rounds)
        for numbers in drawn.tolist()
    )
    return _interval(metric(*columns), np.array([metric(*drawn) for drawn in drawn_columns]), level)


def interval_of_difference(
    metric: Callable[[Sequence[Any], Sequence[Any]], float],
    gold: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
    level: float = LEVEL,
) -> Interval:
    """How much higher the first system scores than the second, on the same examples."""

    def difference(gold: Sequence[Any], first: Sequence[Any], second: Sequence[Any]) -> float:
        return metric(gold, first) - metric(gold, second)

    return interval_of_metric(difference, gold, first, second, seed=seed, rounds=rounds, level=level)


def wilson(successes: int, total: int, level: float = LEVEL) -> Interval:
    """The interval of a share: never outside 0 and 1, and honest for few examples. Wilson, 1927."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    share, z = successes / total, NormalDist().inv_cdf((1 + level) / 2)
    middle = share + z**2 / (2 * total)
    reach = z * (share * (1 - share) / total + z**2 / (4 * total**2)) ** 0.5
    low, high = ((middle + side * reach) / (1 + z**2 / total) for side in (-1, 1))
    return Interval(share, max(low, 0.0), min(high, 1.0))


def draws(size: int, seed: int, rounds: int) -> Iterator[np.ndarray]:
    """[r, N] numbers of examples, some rounds at a time, `rounds` in all."""
    rng = np.random.default_rng(seed)
    at_once = max(1, MOST_DRAWN // max(size, 1))
    for done in range(0, rounds, at_once):
        yield rng.integers(0, max(size, 1), size=(min(at_once, rounds - done), size))


def _interval(value: float, resampled: np.ndarray, level: float) -> Interval:
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
