from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bertie.models.pretrained import Pretrained
from bertie.quickstart.entries import Entry
from bertie.quickstart.finding import TRAINED, WHOLE, WORDS, Finder, Found, Question, questions, recall

NOWHERE = (0.5, -1.0)
DIRECTIONS = {"east": (1.0, 0.0), "north": (0.0, 1.0), "north east": (1.0, 1.0)}

# The questions were written before any model was asked. They are here once more, so that nobody changes them to suit.
WRITTEN_FIRST = {
    "read a csv file": "csv",
    "run a command and get its output": "subprocess",
    "parse command-line options": "argparse, optparse, typer, click",
    "compress a file": "gzip, zlib, bz2, lzma, zipfile",
    "match text against a pattern": "re",
    "copy a folder": "shutil",
    "date arithmetic": "datetime",
    "random choice": "random, secrets, numpy",
    "hash a password or file": "hashlib",
    "read json": "json",
    "temporary file": "tempfile",
    "count things": "collections",
    "cache results of a function": "functools",
    "send an http request": "urllib, http, httpx, requests",
    "measure time of code": "timeit, time",
    "run in parallel": "multiprocessing, concurrent, threading, joblib",
    "write logs": "logging",
    "iterate in combinations": "itertools",
    "matrix multiplication": "numpy, torch, operator",
    "split text into tokens": "tokenize, tokenizers, shlex",
}


def test_the_questions_are_as_they_were_written() -> None:
    assert {one.question: ", ".join(one.accepted) for one in questions()} == WRITTEN_FIRST
    assert len(questions()) == 20


class Compass:
    """A model that knows where a few texts point."""

    def __init__(self, turn: float = 1.0):
        self.turn = turn

    def encode_report(self, texts: list[str], **options: Any) -> SimpleNamespace:
        places = [DIRECTIONS.get(text, NOWHERE) for text in texts]
        return SimpleNamespace(vectors=self.turn * np.array(places, np.float32))


def model(turn: float = 1.0) -> Pretrained:
    return cast(Pretrained, Compass(turn))


@pytest.fixture
def finder(made: Callable[..., Entry]) -> Finder:
    entries = [
        made("a.first", "points east"),
        made("a.second", "points nearly east"),
        made("b.third", "points north"),
        made("c.fourth", "points west"),
    ]
    vectors = np.array([(5, 0), (3, 1), (0, 0.1), (-1, 0)], np.float32)
    return Finder(entries, {TRAINED: (model(), vectors), "opposite": (model(-1.0), vectors)})


def names_and_scores(found: list[Found]) -> list[tuple[str, float]]:
    return [(one.entry.name, round(one.score, 3)) for one in found]


def test_by_meaning_each_group_shows_its_best(finder: Finder) -> None:
    assert names_and_scores(finder.find(TRAINED, "east")) == [("a.first", 1.0), ("b.third", 0.0), ("c.fourth", -1.0)]
    assert names_and_scores(finder.find(TRAINED, "north east", top=2)) == [("a.second", 0.894), ("b.third", 0.707)]


def test_by_words_what_shares_none_is_not_found(finder: Finder) -> None:
    assert [one.entry.name for one in finder.find(WORDS, "north")] == ["b.third"]
    assert finder.find(WORDS, "south") == []


def test_words_are_also_looked_up_in_the_whole_texts(made: Callable[..., Entry]) -> None:
    entry = made("a.first", "points east", rest="never to the south")
    finder = Finder([entry], {TRAINED: (model(), np.ones((1, 2), np.float32))})
    assert finder.find(WORDS, "south") == []
    assert [one.entry.name for one in finder.find(WHOLE, "south")] == ["a.first"]


def test_texts_of_a_user_are_not_gathered_by_file(made: Callable[..., Entry]) -> None:
    entries = [made(f"a.txt:{number}", "east", kind="text") for number in range(3)]
    found = Finder(entries, {TRAINED: (model(), np.eye(3, 2, dtype=np.float32))}).find(TRAINED, "east")
    assert [one.entry.name for one in found] == ["a.txt:0", "a.txt:1", "a.txt:2"]


def test_each_model_answers_with_its_own_vectors(finder: Finder) -> None:
    assert finder.methods == (TRAINED, "opposite", WORDS, WHOLE)
    assert names_and_scores(finder.find("opposite", "east", top=1)) == [("c.fourth", 1.0)]


def test_the_rank_is_that_of_the_first_accepted_group(finder: Finder) -> None:
    outcome = finder.outcome(Question("north", ("c", "b")))
    assert (outcome.rank(TRAINED), outcome.rank(WORDS)) == (1, 1)
    outcome = finder.outcome(Question("east", ("b",)))
    assert (outcome.rank(TRAINED), outcome.rank(WORDS)) == (2, None)


def test_a_method_is_unsure_where_random_words_score_as_well(finder: Finder) -> None:
    east, away = finder.outcome(Question("east", ())), finder.outcome(Question("nowhere", ()))
    assert east.usual[TRAINED] == pytest.approx(0.447, abs=1e-3), "of a question that points nowhere"
    assert not east.is_unsure(TRAINED)
    assert away.is_unsure(TRAINED) and away.is_unsure(WORDS), "no better, and no word in common"
    # By words: of one random word the best score is usually that of a word that all texts have.
    assert east.usual[WORDS] > 0 and not finder.outcome(Question("west", ())).is_unsure(WORDS)
    assert finder.outcome(Question("points", ())).is_unsure(WORDS)
    assert finder.usual_score(TRAINED, 3) == finder.usual_score(TRAINED, 3)


def test_a_question_without_words_is_answered(finder: Finder) -> None:
    assert finder.outcome(Question("?!", ())).is_unsure(WORDS)


def test_recall_counts_own_answers_among_the_first() -> None:
    scores = np.array([[3, 2, 1], [3, 2, 1], [3, 2, 1]])
    assert recall(scores, top=1) == pytest.approx(1 / 3)
    assert recall(scores, top=2) == pytest.approx(2 / 3)
    assert recall(np.zeros((3, 3)), top=2) == 0, "equal scores find nothing"
