from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bertie.models.pretrained import Pretrained
from bertie.quickstart.entry import Entry
from bertie.quickstart.finding import Finder, Found, place_of, recall
from bertie.quickstart.questions import Question

DIRECTIONS = {"east": (1.0, 0.0), "north": (0.0, 1.0), "north east": (1.0, 1.0)}


class Compass:
    """Knows where a few texts point."""

    def encode_report(self, texts: list[str], **options: Any) -> SimpleNamespace:
        return SimpleNamespace(vectors=np.array([DIRECTIONS[text] for text in texts], np.float32))


@pytest.fixture
def finder(made: Callable[..., Entry]) -> Finder:
    entries = [
        made("a.first", "points east"),
        made("a.second", "points nearly east"),
        made("b.third", "points north"),
        made("c.fourth", "points west"),
    ]
    vectors = np.array([(5, 0), (3, 1), (0, 0.1), (-1, 0)], np.float32)
    return Finder(cast(Pretrained, Compass()), entries, vectors)


def told(found: list[Found]) -> list[tuple[str, float]]:
    return [(one.entry.name, round(one.score, 3)) for one in found]


def test_by_meaning_each_group_shows_its_best(finder: Finder) -> None:
    assert told(finder.by_meaning("east")) == [("a.first", 1.0), ("b.third", 0.0), ("c.fourth", -1.0)]
    assert told(finder.by_meaning("north east", top=2)) == [("a.second", 0.894), ("b.third", 0.707)]


def test_by_words_what_shares_none_is_not_found(finder: Finder) -> None:
    assert [one.entry.name for one in finder.by_words("north")] == ["b.third"]
    assert finder.by_words("south") == []


def test_words_are_also_looked_up_in_the_whole_texts(made: Callable[..., Entry]) -> None:
    entry = made("a.first", "points east", rest="never to the south")
    finder = Finder(cast(Pretrained, Compass()), [entry], np.ones((1, 2), np.float32))
    assert finder.by_words("south") == []
    assert [one.entry.name for one in finder.in_whole("south")] == ["a.first"]


def test_texts_of_a_user_are_not_gathered_by_file(made: Callable[..., Entry]) -> None:
    entries = [made(f"a.txt:{number}", "east", kind="text") for number in range(3)]
    found = Finder(cast(Pretrained, Compass()), entries, np.eye(3, 2, dtype=np.float32)).by_meaning("east")
    assert [one.entry.name for one in found] == ["a.txt:0", "a.txt:1", "a.txt:2"]


def test_the_place_is_that_of_the_first_accepted_group(finder: Finder) -> None:
    outcome = finder.outcome(Question("north", ("c", "b")))
    assert (outcome.meaning_place, outcome.words_place) == (1, 1)
    outcome = finder.outcome(Question("east", ("b",)))
    assert (outcome.meaning_place, outcome.words_place) == (2, None)
    assert place_of(outcome.by_meaning, ["nobody"]) is None


def test_recall_counts_own_answers_among_the_first() -> None:
    scores = np.array([[3, 2, 1], [3, 2, 1], [3, 2, 1]])
    assert recall(scores, top=1) == pytest.approx(1 / 3)
    assert recall(scores, top=2) == pytest.approx(2 / 3)
    assert recall(np.zeros((3, 3)), top=2) == 0, "equal scores find nothing"
