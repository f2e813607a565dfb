"""Turns words into tokens, and finds for every word the one token that represents it.

A word's place is that of its first token. A word that gives no token (a zero-width character, a control character)
becomes the unknown token, so that it has a place too; these are counted. A line of more tokens than the model takes
becomes several windows with whole words in common, and each word is answered from the window where it has most context.
The answers of the windows, one after another, are those of the words in order.

Axes: W words of a line, T their tokens, n tokens of one window with its special tokens, w words of one window.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field

from bertie.errors import SpecError, TokenizerError
from bertie.spec import Spec
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.word_splitting import WordSplit

Unit = Literal["words", "characters"]
_UNITS: dict[Unit, re.Pattern[str]] = {"words": re.compile(r"\S+"), "characters": re.compile(r"\S")}


@dataclass(frozen=True)
class Line:
    """A raw line as words, with the characters that each one is: `text[start:end] == word`."""

    text: str
    words: list[str]  # [W]
    offsets: np.ndarray  # [W, 2] int64

    def part(self, first: int, end: int) -> tuple[int, int]:
        """The characters from word `first` to the one before `end`, with all that stands between them."""
        return int(self.offsets[first, 0]), int(self.offsets[end - 1, 1])


def read_line(text: str, unit: Unit = "words") -> Line:
    """Words are what stands between white space; characters are all that are not white space."""
    return line_at(text, [match.span() for match in _UNITS[unit].finditer(text)])


def line_at(text: str, spans: Sequence[tuple[int, int]]) -> Line:
    """A line whose words are at these places."""
    offsets = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return Line(text, [text[start:end] for start, end in spans], offsets)


@dataclass(frozen=True)
class Window:
    """One row for the model: some neighbouring words of a line."""

    ids: np.ndarray  # [n] int64, special tokens included
    words: np.ndarray  # [n] int64, the number of each token's word in its line, -1 for special tokens
    first: int  # the number of the window's first word
    places: np.ndarray  # [w] int64, the token that represents each word of the window
    answered: slice  # those of its words whose answers are taken from here


@dataclass(frozen=True)
class Windows:
    """A whole line."""

    rows: tuple[Window, ...]  # none for a line without words
    num_words: int
    num_without_tokens: int  # words that stand as the unknown token
    num_truncated: int  # tokens of words longer than a whole window

    def join(self, answers: Iterable[Sequence[Any]]) -> list[Any]:
        """One answer for each word of the line, from those for all words of each window."""
        return [answer for row, given in zip(self.rows, answers, strict=True) for answer in given[row.answered]]


class Alignment(Spec):
    """How words and tokens belong together. Kept with a model: what reads its answers must do as its training did."""

    kind: Literal["first"] = "first"
    unit: Unit = "words"  # what a raw line is cut into
    split: WordSplit = WordSplit()  # how, where the unit is words
    overlap: int = Field(default=64, ge=0)  # tokens that neighbouring windows share, at most half of a window

    def read(self, text: str) -> Line:
        return read_line(text, self.unit) if self.unit == "characters" else line_at(text, self.split.spans(text))

    def build(self, tokenizer: Tokenizer, max_length: int) -> "Aligner":
        return Aligner(tokenizer, max_length, self.overlap)


class Aligner:
    def __init__(self, tokenizer: Tokenizer, max_length: int, overlap: int = 64):
        self.tokenizer = tokenizer
        probe = tokenizer.encode_words(["a"])
        inside = np.flatnonzero(~probe.special)
        if not len(inside):
            raise TokenizerError("the tokenizer gives no token for the word 'a'", hint="use a larger vocabulary")
        self.before, self.after = probe.ids[: inside[0]], probe.ids[inside[-1] + 1 :]
        self.room = max_length - len(self.before) - len(self.after)
        if self.room < 1:
            raise SpecError(f"`max_length={max_length}` leaves no room for words beside the special tokens")
        self.overlap = min(overlap, self.room // 2)

    def __call__(self, words: Sequence[str]) -> Windows:
        if not len(words):
            return Windows((), 0, 0, 0)
        tokens = self.tokenizer.encode_words(words)
        ids, numbers = tokens.ids[~tokens.special], tokens.words[~tokens.special]
        counts = np.bincount(numbers, minlength=len(words))
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            places = np.searchsorted(numbers, empty)
            ids, numbers = np.insert(ids, places, self._unknown()), np.insert(numbers, places, empty)
            counts[empty] = 1
        kept = np.arange(len(ids)) - (np.cumsum(counts) - counts)[numbers] < self.room
        ids, numbers, counts = ids[kept], numbers[kept], np.minimum(counts, self.room)
        rows = self._rows(ids, numbers, counts)
        return Windows(rows, len(words), len(empty), int((~kept).sum()))

    def _unknown(self) -> int:
        special = self.tokenizer.special
        found = next((id for id in (special.unk, special.mask, special.pad) if id is not None), None)
        if found is None:
            raise TokenizerError(
                "a word gives no token, and the tokenizer has none that could stand for it",
                hint="remove empty words and control characters, or add an unknown token to the tokenizer",
            )
        return found

    def _rows(self, ids: np.ndarray, numbers: np.ndarray, counts: np.ndarray) -> tuple[Window, ...]:
        ends = np.cumsum(counts)  # [W] the token after each word's last
        starts = ends - counts
        spans = window_spans(counts, self.room, self.overlap)
        cuts = [0, *(_middle(starts, ends, one[1], other[0]) for one, other in pairwise(spans)), len(counts)]
        rows = []
        for (first, end), (cut, next_cut) in zip(spans, pairwise(cuts), strict=True):
            inside = slice(starts[first], ends[end - 1])
            frame = [np.full(len(part), -1) for part in (self.before, self.after)]
            rows.append(
                Window(
                    ids=np.concatenate([self.before, ids[inside], self.after]),
                    words=np.concatenate([frame[0], numbers[inside], frame[1]]),
                    first=first,
                    places=starts[first:end] - starts[first] + len(self.before),
                    answered=slice(cut - first, next_cut - first),
                )
            )
        return tuple(rows)


def window_spans(counts: np.ndarray, room: int, overlap: int) -> list[tuple[int, int]]:
    """Words (first, end) of each window: as many as have room, beginning again at most `overlap` tokens earlier.

    `counts` [W]: the tokens of each word, from 1 to `room`. The last window reaches back as far as it has room.
    """
    ends = np.cumsum(counts)
    starts = ends - counts
    spans: list[tuple[int, int]] = []
    first = end = 0
    while end < len(counts):
        # Back by the overlap, but not so far that the next word would have no room.
        earliest = max(starts[end] - overlap, ends[end] - room)
        first = int(np.searchsorted(starts, earliest))
        end = int(np.searchsorted(ends, starts[first] + room, side="right"))
        if end == len(counts):
            first = int(np.searchsorted(starts, ends[-1] - room))
        spans.append((first, end))
    return spans


def _middle(starts: np.ndarray, ends: np.ndarray, end: int, first: int) -> int:
    """The first word with more context in the later window, from word `first` on, than in the one up to `end`."""
    for word in range(first, end):
        if starts[word] - starts[first] > ends[end - 1] - ends[word]:
            return word
    return end
