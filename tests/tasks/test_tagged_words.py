"""Words, tags and marks as people write them."""

import math
from typing import Any

import pytest

from bertie.errors import InputError
from bertie.tasks.tagged_words import marks_of, tags_of_cell, words_of
from bertie.text.tokenizers.alignment import Alignment

WORDS = ["Ann", "ran", "and", "Bob", "ran", "3", "miles"]


def test_words_from_a_list_or_a_text() -> None:
    assert words_of(["a b", "", 3], Alignment()) == (["a b", "", "3"], None)
    words, line = words_of("  Ann\tran. ", Alignment())
    assert words == ["Ann", "ran", "."]
    words, line = words_of("  Ann\tran. ", Alignment(), tagged=True)
    assert words == ["Ann", "ran."] and line is not None and line.offsets.tolist() == [[2, 5], [6, 10]]
    words, line = words_of("北京 a", Alignment(unit="characters"))
    assert words == ["北", "京", "a"]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (None, "there are no words"),
        ("  ", "there are no words"),
        ([], "there are no words"),
        (math.nan, "there are no words"),
        (5, "the words are int, not a list or a text"),
        (["a", None], "the word is empty"),
    ],
)
def test_what_are_no_words(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        words_of(cell, Alignment())


def test_tags_from_a_list_or_a_text() -> None:
    assert tags_of_cell("O B-PER\tI-PER") == tags_of_cell(["O", "B-PER", "I-PER"]) == ["O", "B-PER", "I-PER"]
    assert tags_of_cell([0, 3.0]) == ["0", "3"]
    for cell, message in (
        (None, "the tags are empty"),
        (3, "the tags are int, not a list"),
        ([None], "the tag is empty"),
    ):
        with pytest.raises(InputError, match=message):
            tags_of_cell(cell)


@pytest.mark.parametrize(
    ("cell", "marked"),
    [
        (1, 1),
        ("1", 1),
        (3, 3),
        ("and", 2),
        ([0, 1, 0, 0, 0, 0, 0], 1),
        (["-", "-", "-", "-", "run.01", "-", "-"], 4),
        (["_", "O", "", None, "V", "0", False], 4),
    ],
)
def test_one_word_is_marked(cell: Any, marked: int) -> None:
    assert marks_of(cell, WORDS).tolist() == [int(number == marked) for number in range(len(WORDS))]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (None, "the mark is empty"),
        (7, "there is no word 7, counted from 0, among 7 words"),
        ("ran", "the marked word 'ran' stands 2 times in the sentence; mark it by its number"),
        ("runs", "the marked word 'runs' stands 0 times"),
        ([0, 0], "there are 7 words and 2 marks"),
        ([0] * 7, "no word is marked"),
    ],
)
def test_what_marks_no_word(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        marks_of(cell, WORDS)
