"""Seconds become speeds, speeds become bars."""

import numpy as np
import pytest
from benchmarks.figures import Bar, Speed, judge, lowest_cosine, paired_ratio


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
        "bertie": speed(126),
    }
    against_reference, against_others, of_peak = judge(speeds, 0.8)
    assert against_reference.value == pytest.approx(1.26)
    assert against_reference.holds
    assert not against_reference.reached
    assert against_others.value == pytest.approx(1.05)
    assert "OpenVINO" in against_others.name
    assert of_peak.holds
    assert of_peak.reached


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
