"""The interval of a difference: it knows both kinds of luck, that of examples and that of seeds."""

from typing import Any

import numpy as np
import pytest
from experiments.differences import difference, interval_of_seeds, told
from experiments.task_scores import MEASURES

from bertie.tasks.metrics.intervals import Interval

ACCURACY = MEASURES["choice"]


def outcomes(rng: np.random.Generator, share: float, size: int = 400) -> np.ndarray:
    return (rng.random((size, 1)) < share).astype(float)


def test_the_same_answers_have_no_difference() -> None:
    rng = np.random.default_rng(0)
    (seed,) = [outcomes(rng, 0.8)]
    found = interval_of_seeds([seed], [seed.copy()], ACCURACY)
    assert (found.value, found.low, found.high) == (0, 0, 0), "examples are drawn alike for both"


def test_a_clear_difference_is_seen() -> None:
    rng = np.random.default_rng(0)
    first, second = ([outcomes(rng, share) for _ in range(5)] for share in (0.9, 0.7))
    found = interval_of_seeds(first, second, ACCURACY)
    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    assert 0.1 < found.low < found.value < found.high < 0.3


def test_seeds_that_differ_widen_it() -> None:
    rng = np.random.default_rng(0)
    alike = [outcomes(rng, 0.8) for _ in range(5)]
    other = [outcomes(rng, 0.8) for _ in range(5)]
    unlike = [outcomes(rng, share) for share in (0.6, 0.7, 0.8, 0.9, 1.0)]
    narrow, wide = (interval_of_seeds(one, other, ACCURACY) for one in (alike, unlike))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_scores_that_are_no_means() -> None:
    """[right, told, gold] of sentences: the second contender finds nothing."""
    first = np.array([[1, 1, 1], [0, 1, 1], [2, 2, 2]])
    second = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 2]])
    assert interval_of_seeds([first], [second], MEASURES["tag"]).value == pytest.approx(2 * 3 / 8)


def test_only_sets_that_both_have_are_compared() -> None:
    def result(**examples: Any) -> dict[str, Any]:
        return {"figures": {}, "examples": examples}

    rows = {"a": [result(x=[[1.0], [1.0]]), result(y=[[1.0]])], "b": [result(x=[[0.0], [0.0]])]}
    found = difference(rows, "a", "b", "x", "choice")
    assert found is not None and found.value == 1.0
    assert difference(rows, "a", "b", "y", "choice") is None
    assert difference(rows, "a", "none", "x", "choice") is None


def test_told_in_points() -> None:
    assert told(Interval(0.012, -0.004, 0.03)) == "+1.2 points, 95% interval -0.4 to +3.0"
