"""How much better one contender is than another: what every example adds, seed by seed, enters; an interval leaves.

Each round draws examples again, the same for both, and the seeds of each: both a few lucky examples and a few lucky
starts may have made the difference.
"""

from collections.abc import Sequence

import numpy as np

from bertie.tasks.metrics.intervals import LEVEL, ROUNDS, Interval, draws
from experiments.experiment import Rows
from experiments.task_scores import MEASURES, Measure

Seeds = Sequence[np.ndarray]  # [N, S] each


def interval_of_seeds(
    first: Seeds, second: Seeds, measure: Measure, *, seed: int = 0, rounds: int = ROUNDS
) -> Interval:
    """Of the difference of their means over seeds."""
    rng = np.random.default_rng(seed)

    def mean(contender: Seeds, numbers: np.ndarray | slice) -> float:
        return float(np.mean([measure.score(examples[numbers]) for examples in contender]))

    def drawn(contender: Seeds) -> Seeds:
        return [contender[number] for number in rng.integers(0, len(contender), len(contender))]

    found = [
        mean(drawn(first), numbers) - mean(drawn(second), numbers)
        for block in draws(len(first[0]), seed, rounds)
        for numbers in block
    ]
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    whole = slice(None)
    return Interval(mean(first, whole) - mean(second, whole), float(low), float(high))


def difference(rows: Rows, first: str, second: str, name: str, measure: str) -> Interval | None:
    """On the set `name`; None where one of the two has no result yet."""
    ours, theirs = (
        [np.array(result["examples"][name]) for result in rows.get(row, ()) if name in result.get("examples", {})]
        for row in (first, second)
    )
    return interval_of_seeds(ours, theirs, MEASURES[measure]) if ours and theirs else None


def told(interval: Interval) -> str:
    """In points of a hundred."""
    value, low, high = (100 * one for one in (interval.value, interval.low, interval.high))
    return f"{value:+.1f} points, 95% interval {low:+.1f} to {high:+.1f}"
