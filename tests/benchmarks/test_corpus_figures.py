"""Turns become speeds and shares, these become bars."""

import pytest
from benchmarks.corpus_figures import ALIKE, CHINESE, EVERYTHING, PEER, SENTENCES, Bar, Row, different_tokens, judge
from benchmarks.corpus_turns import Turn


def turn(seconds: float, memory: int | None = 500_000_000, disk: int = 60, left: int = 50) -> Turn:
    return Turn(seconds, 2 * seconds, memory, disk * 10**6, left * 10**6, 0.0, "")


def row(seconds: float) -> Row:
    return Row.of(80_000_000, [turn(seconds)], [seconds])


def test_speed_is_that_of_the_best_turn_and_use_that_of_the_worst() -> None:
    turns = [turn(8.0), turn(4.0, memory=900_000_000), turn(16.0, disk=72)]
    found = Row.of(80_000_000, turns, [7.0, 2.0, 15.0])
    assert (found.best, found.middle, found.slowest, found.inside) == (20, 10, 5, 40)
    assert found.spread == 0.75
    assert found.processor_seconds == 8
    assert (found.memory, found.disk, found.disk_left) == (0.9, 0.9, 0.625)


def test_bars_ask_for_speed_and_bound_disk_and_memory() -> None:
    rows = {PEER: row(40), ALIKE: row(5), SENTENCES: row(8.1), EVERYTHING: row(100), CHINESE: row(100)}
    rows[CHINESE] = Row.of(80_000_000, [turn(100, memory=1_100_000_000, disk=96)], [100])
    bars = {bar.name: bar for bar in judge(rows)}
    assert bars["times datasets.map"].value == pytest.approx(8)
    assert bars["times datasets.map"].holds
    assert {name for name, bar in bars.items() if not bar.holds} == {
        "MB/s of bertie, sentences",
        "disk of bertie, Chinese, times the text",
        "memory of bertie, Chinese, GB",
    }


def test_what_was_not_run_or_not_seen_has_no_bar() -> None:
    assert judge({PEER: row(40)}) == []
    unseen = Row.of(80_000_000, [turn(1, memory=None)], [1])
    assert [bar.name for bar in judge({EVERYTHING: unseen})] == ["disk of bertie, all on, times the text"]


def test_a_broken_bar_says_so() -> None:
    assert "at most 1.1: BROKEN" in str(Bar("disk", 1.11, 1.1, at_most=True))
    assert "at least 8.0: holds" in str(Bar("times", 8.0, 8.0))


def test_tokens_may_differ_by_dropped_ends_and_odd_characters_alone() -> None:
    assert not different_tokens(1_000_000, 1_000_000 - 999 - 256, most_dropped=256)
    assert not different_tokens(1_000_000, 1_000_999, most_dropped=256)
    assert different_tokens(1_000_000, 1_000_000 - 1001 - 256, most_dropped=256)
    assert different_tokens(1_000_000, 1_001_001, most_dropped=256)
