"""Reads words, tags and marks from cells of a table.

Axes: W words.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertie.errors import InputError
from bertie.tasks.label_sets import label_of
from bertie.tasks.task import is_empty
from bertie.text.tokenizers.alignment import Alignment, Line, read_line

UNMARKED = {"", "0", "-", "_", "O", "False", "false"}  # cells of words that are not asked about


def words_of(cell: Any, alignment: Alignment, *, tagged: bool = False) -> tuple[list[str], Line | None]:
    """A list is taken as it is; a text is cut into words, and its line has their places. A `tagged` text has white
    space between its words, or its units are characters."""
    line = None
    if isinstance(cell, str):
        line = read_line(cell, alignment.unit) if tagged else alignment.read(cell)
    words = line.words if line is not None else cell
    if is_empty(words) or (isinstance(words, list | tuple) and not words):
        raise InputError("there are no words")
    if not isinstance(words, list | tuple):
        raise InputError(f"the words are {type(words).__name__}, not a list or a text")
    return [word if isinstance(word, str) else label_of(word, "word") for word in words], line


def tags_of_cell(cell: Any) -> list[str]:
    """A list, or tags in one text with white space between them."""
    tags = cell.split() if isinstance(cell, str) else cell
    if not isinstance(tags, list | tuple):
        raise InputError("the tags are empty" if is_empty(tags) else f"the tags are {type(tags).__name__}, not a list")
    return [(tag.strip() if isinstance(tag, str) else "") or label_of(tag, "tag") for tag in tags]


def marks_of(cell: Any, words: Sequence[str]) -> np.ndarray:
    """[W] 1 where a word is marked: by its number from 0, by the word itself, or by a cell for each word."""
    if isinstance(cell, list | tuple):
        if len(cell) != len(words):
            raise InputError(f"there are {len(words)} words and {len(cell)} marks")
        marks = np.array([not is_empty(one) and str(one).strip() not in UNMARKED for one in cell])
    else:
        marks = np.arange(len(words)) == _number_of_word(label_of(cell, "mark"), words)
    if not marks.any():
        raise InputError("no word is marked")
    return marks.astype(np.int64)


def _number_of_word(mark: str, words: Sequence[str]) -> int:
    if mark.isdecimal():
        if int(mark) >= len(words):
            raise InputError(f"there is no word {mark}, counted from 0, among {len(words)} words")
        return int(mark)
    if (count := list(words).count(mark)) != 1:
        raise InputError(f"the marked word {mark!r} stands {count} times in the sentence", hint="mark it by its number")
    return list(words).index(mark)
