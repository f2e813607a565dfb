"""Gives each metric of a task a 95% interval.

Rows are drawn with replacement, as in tasks/metrics/intervals.py; `Task.resample` scores a draw. A task that can only
score all answers again may be slow: the time is bounded, and the number of draws is reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from bertie.tasks.metrics.intervals import LEVEL, ROUNDS, Interval, draws
from bertie.tasks.task import Answer, Task

SECONDS = 5.0
LEAST_ROUNDS = 100  # fewer draws show nothing about the ends of an interval


@dataclass(frozen=True)
class MeasuredMetrics:
    values: Mapping[str, float]  # of all rows, as they are
    intervals: Mapping[str, Interval]  # by metric; none where the draws were too few
    num_rounds: int = 0
    unit: str = "rows"


def measured_metrics(
    task: Task, answers: Sequence[Answer], gold: Sequence[Any], *, seconds: float = SECONDS, seed: int = 0
) -> MeasuredMetrics:
    """Without rows there are no metrics. The draws take at most so many seconds."""
    if not answers:
        return MeasuredMetrics({}, {})
    values, resampling = task.score(answers, gold), task.resample(answers, gold)
    drawn: list[dict[str, float]] = []
    end = monotonic() + seconds
    for numbers in (one for several in draws(resampling.size, seed, ROUNDS) for one in several):
        if monotonic() > end or not resampling.size:
            break
        drawn.append(resampling.score(numbers))
    known = [name for name in values if name in drawn[0]] if len(drawn) >= LEAST_ROUNDS else []
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    intervals = {
        name: Interval(values[name], *np.quantile([one[name] for one in drawn], ends).tolist()) for name in known
    }
    return MeasuredMetrics(values, intervals, len(drawn), resampling.unit)
