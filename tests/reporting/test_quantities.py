"""Numbers for people."""

import pytest

from bertie.reporting.quantities import format_bytes, format_count, format_duration, format_flops


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.44, "0.4 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599.7, "1 h 00 min"),
        (7260, "2 h 01 min"),
        (1e5, "1 d 3 h"),
    ],
)
def test_times(seconds: float, told: str) -> None:
    assert format_duration(seconds) == told


def test_sizes_and_work() -> None:
    assert (format_bytes(999), format_bytes(45_100_000), format_bytes(2.5e9)) == ("999 bytes", "45.1 MB", "2.5 GB")
    assert (format_flops(27.1e6), format_flops(1.9e15)) == ("27.1 MFLOPs", "1.9 PFLOPs")


@pytest.mark.parametrize(("count", "words"), [(514, "514"), (30_522, "30.5k"), (109_482_240, "109.5M")])
def test_counts(count: int, words: str) -> None:
    assert format_count(count) == words
