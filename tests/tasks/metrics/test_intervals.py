"""Intervals: they cover what they should, and every way to the same one gives the same one."""

import numpy as np
import pytest
import scipy.stats

from bertie.tasks.metrics import intervals
from bertie.tasks.metrics.entities import f1_of_sums
from bertie.tasks.metrics.intervals import (
    interval_of_difference,
    interval_of_mean,
    interval_of_metric,
    interval_of_sums,
    wilson,
)
from bertie.tasks.metrics.labels import accuracy, matthews


def test_the_mean_is_a_metric_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=50)
    quick = interval_of_mean(values, rounds=200)
    slow = interval_of_metric(lambda column: float(np.mean(column)), values.tolist(), rounds=200)
    assert (quick.value, quick.low, quick.high) == pytest.approx((slow.value, slow.low, slow.high))
    assert quick == interval_of_mean(values, rounds=200) != interval_of_mean(values, rounds=200, seed=1)
    monkeypatch.setattr(intervals, "MOST_DRAWN", 120)  # two rounds at a time
    in_parts = interval_of_mean(values, rounds=200)
    assert (in_parts.low, in_parts.high) == pytest.approx((quick.low, quick.high))


def test_the_interval_of_a_mean_is_about_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(2).normal(3.0, 2.0, size=2000)
    found = interval_of_mean(values)
    reach = 1.96 * values.std() / np.sqrt(2000)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach), abs=reach / 5)
    narrow = interval_of_mean(values, level=0.5)
    assert found.low < narrow.low < narrow.high < found.high


def test_nineteen_of_twenty_intervals_hold_the_truth() -> None:
    rng = np.random.default_rng(3)
    held = [interval_of_mean(rng.random(60) < 0.3, rounds=300).contains(0.3) for _ in range(300)]
    assert 0.9 < np.mean(held) < 0.98


def test_f1_from_sums_is_f1_of_drawn_examples() -> None:
    counts = np.random.default_rng(4).integers(0, 4, size=(40, 3))
    counts[:, 0] = np.minimum(counts[:, 0], counts[:, 1:].min(1))
    quick = interval_of_sums(counts, f1_of_sums, rounds=100)

    def drawn_f1(rows: list[np.ndarray]) -> float:
        right, predicted, gold = np.sum(rows, axis=0)
        return 2 * right / (predicted + gold)

    slow = interval_of_metric(drawn_f1, list(counts), rounds=100)
    assert (quick.value, quick.low, quick.high) == pytest.approx((slow.value, slow.low, slow.high))


def test_two_systems_are_compared_on_the_same_draws() -> None:
    rng = np.random.default_rng(5)
    gold = rng.integers(0, 2, 400)
    # The same mistakes on hard examples, and a few more of the second system's own.
    first = np.where(rng.random(400) < 0.4, 1 - gold, gold)
    second = np.where(rng.random(400) < 0.05, 1 - gold, first)
    paired = interval_of_difference(accuracy, gold.tolist(), first.tolist(), second.tolist(), rounds=300)
    by_example = interval_of_mean((first == gold).astype(float) - (second == gold), rounds=300)
    assert (paired.value, paired.low, paired.high) == pytest.approx((by_example.value, by_example.low, by_example.high))
    alone = interval_of_mean(first == gold, rounds=300)
    assert paired.high - paired.low < 0.6 * (alone.high - alone.low)
    same = interval_of_difference(matthews, gold.tolist(), first.tolist(), first.tolist(), rounds=20)
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("successes", "total"), [(0, 10), (3, 10), (10, 10), (870, 1000), (1, 1)])
def test_wilson_equals_scipy(successes: int, total: int) -> None:
    for level in (0.9, 0.95):
        expected = scipy.stats.binomtest(successes, total).proportion_ci(level, method="wilson")
        found = wilson(successes, total, level)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert found.value == successes / total


def test_nothing_is_known_of_no_examples() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)
    assert interval_of_mean([]).value == 0.0
