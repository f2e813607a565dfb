"""Seconds become speeds, speeds become bars."""

import numpy as np
import pytest
from benchmarks.figures import Bar, Peak, Speed, judge, lowest_cosine, paired_ratio


def speed(best: float) -> Speed:
    return Speed(best, best, best)


def test_the_best_round_is_the_speed() -> None:
    found = Speed.of(1000, [2.0, 1.0, 4.0])
    assert (found.best, found.middle, found.slowest) == (1000, 500, 250)
    assert found.spread == 0.75


def test_bars_compare_with_the_reference_and_with_the_fastest_other() -> None:
    speeds = {
        "sentence-transformers": speed(100),
        "ONNX Runtime": speed(110),
        "OpenVINO": speed(120),
        "sentence-transformers, same engine": speed(160),
        "bertie": speed(150),
    }
    against_reference, against_others, of_peak = judge(speeds, 0.8)
    assert against_reference.value == pytest.approx(1.5)
    assert not against_reference.holds
    assert against_others.value == pytest.approx(1.25), "a peer counts as its users run it"
    assert "OpenVINO" in against_others.name
    assert against_others.holds and against_others.reached
    assert of_peak.holds
    assert not of_peak.reached


def test_a_share_of_the_peak_counts_where_torchs_own_engine_is_the_fastest() -> None:
    own = Peak.of(
        [
            {"flops": 90.0, "product": "a", "default": "MKL", "engines": {"MKL": 90.0, "oneDNN": 80.0}},
            {"flops": 100.0, "product": "b", "default": "MKL", "engines": {"MKL": 70.0, "MKL packed": 100.0}},
        ]
    )
    assert (own.flops, own.product, own.engines) == (100.0, "b", {"MKL": 90.0, "oneDNN": 80.0, "MKL packed": 100.0})
    other = Peak(100.0, "c", {"MKL": 60.0, "oneDNN": 90.0, "oneDNN packed": 100.0}, "MKL")
    assert (own.enough(0.82), other.enough(0.82)) == (0.82, None)
    bar = Bar("times the peer", 1.1, 3.0, 5.0, own.enough(0.82))
    assert bar.holds and not bar.reached
    assert "bar 3.00: holds by 0.82 of the peak" in str(bar)
    assert not Bar("times the peer", 1.1, 3.0, 5.0, own.enough(0.79)).holds
    assert not Bar("times the peer", 1.1, 3.0, 5.0, other.enough(0.99)).holds
    assert "by" not in Bar("times the peer", 3.1, 3.0, 5.0, own.enough(0.82)).verdict


def test_a_bar_without_a_goal_and_one_without_a_must() -> None:
    assert str(Bar("times", 2.0, 1.6)).endswith("2.00   bar 1.60: holds")
    assert str(Bar("times", 2.0, None, 4.0)).endswith("2.00   goal 4.00: not yet")


def test_a_broken_bar_says_so() -> None:
    bar = Bar("times other", 1.04, 1.05, 1.25)
    assert not bar.holds
    assert "BROKEN" in str(bar)
    assert "not yet" in str(bar)


def test_paired_ratios_forgive_a_machine_that_slows_down() -> None:
    assert paired_ratio([1.0, 2.0, 4.0], [1.5, 3.0, 6.0]) == 1.5


def test_the_lowest_cosine_finds_the_one_wrong_row() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((50, 8))
    assert lowest_cosine(3 * vectors, vectors) == pytest.approx(1)
    wrong = vectors.copy()
    wrong[17] *= -1
    assert lowest_cosine(wrong, vectors) == pytest.approx(-1)
    with pytest.raises(ValueError, match="cannot be compared"):
        lowest_cosine(vectors[:3], vectors)


def test_vectors_that_are_no_numbers_do_not_pass() -> None:
    vectors = np.ones((3, 4))
    broken = vectors.copy()
    broken[1, 1] = np.nan
    assert not lowest_cosine(broken, vectors) >= 0.9999
