"""Amounts as people write them."""

from typing import Any, ClassVar

import pytest

from bertie.errors import SpecError
from bertie.jobs.job import Job, option
from bertie.jobs.options.amounts import AnyCurriculum, Count, Seconds


class Amounts(Job):
    """Take amounts."""

    verb: ClassVar[str] = "amounts"
    tokens: Count | None = option(None, "Tokens.")
    time: Seconds | None = option(None, "Time.")
    curriculum: AnyCurriculum | None = option(None, "Lengths.")


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ("50M", 50_000_000),
        ("2.5k", 2500),
        ("1_000", 1000),
        ("1,000", 1000),
        ("3b", 3 * 10**9),
        (7, 7),
        (5e6, 5 * 10**6),
    ],
)
def test_counts(given: object, count: int) -> None:
    assert Amounts.of(tokens=given).tokens == count


@pytest.mark.parametrize("text", ["", "M", "0", "-5", "5 T", "many", "0.1"])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(SpecError, match=r"`tokens`: .* is not a count; write it like"):
        Amounts.of(tokens=text)


@pytest.mark.parametrize(
    ("given", "seconds"), [("90m", 5400), ("1h30m", 5400), ("45s", 45), ("0.5h", 1800), ("1d", 86400), (2.5, 2.5)]
)
def test_times(given: object, seconds: float) -> None:
    assert Amounts.of(time=given).time == seconds


@pytest.mark.parametrize("text", ["", "90", "0s", "m", "1h 30", "-5m"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(SpecError, match=r"`time`: .* is not a time; write it like"):
        Amounts.of(time=text)


def test_numbers_have_the_same_limits() -> None:
    for options in ({"tokens": 0}, {"time": 0}, {"tokens": 1.5}):
        with pytest.raises(SpecError, match="`t"):
            Amounts.of(**options)


def test_curricula() -> None:
    curriculum = Amounts.of(curriculum="128:0.9,512:0.1").curriculum
    assert curriculum is not None
    assert [(phase.length, phase.share) for phase in curriculum.phases] == [(128, 0.9), (512, 0.1)]
    assert Amounts.of(curriculum=curriculum).curriculum == curriculum
    for text, complaint in (("128", "is not a curriculum"), ("128:0.5,512:0.1", "add up to 1"), ("4:1", "greater")):
        with pytest.raises(SpecError, match=f"`curriculum`: .*{complaint}"):
            Amounts.of(curriculum=text)


def test_what_a_config_file_holds_is_read_back() -> None:
    options: dict[str, Any] = {"tokens": "50M", "time": "1000000.5s", "curriculum": "128:0.7,512:0.3"}
    job = Amounts.of(**options)
    assert job.given() == {**options, "tokens": 50_000_000}
    assert Amounts.from_options(job.given()) == job
