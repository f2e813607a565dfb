"""Amounts as people write them."""

import pytest

from bertie.cli.amounts import count_of, curriculum_of, seconds_of
from bertie.errors import SpecError


@pytest.mark.parametrize(
    ("text", "count"), [("50M", 50_000_000), ("2.5k", 2500), ("1_000", 1000), ("1,000", 1000), ("3b", 3 * 10**9)]
)
def test_counts(text: str, count: int) -> None:
    assert count_of(text, "--tokens") == count


@pytest.mark.parametrize("text", ["", "M", "0", "-5", "5 T", "many", "0.1"])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(SpecError, match=r"--tokens .* is no count; write it like"):
        count_of(text, "--tokens")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("1h30m", 5400), ("45s", 45), ("0.5h", 1800), ("1d", 86400)]
)
def test_times(text: str, seconds: float) -> None:
    assert seconds_of(text, "--time") == seconds


@pytest.mark.parametrize("text", ["", "90", "0s", "m", "1h 30", "-5m"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(SpecError, match=r"--time .* is no time; write it like"):
        seconds_of(text, "--time")


def test_curricula() -> None:
    phases = curriculum_of("128:0.9,512:0.1", "--curriculum").phases
    assert [(phase.length, phase.share) for phase in phases] == [(128, 0.9), (512, 0.1)]
    for text, complaint in (("128", "is no curriculum"), ("128:0.5,512:0.1", "add up to 1"), ("4:1", "length")):
        with pytest.raises(SpecError, match=complaint):
            curriculum_of(text, "--curriculum")
