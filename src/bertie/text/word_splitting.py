"""Splits raw text into words as the words of training data were split: punctuation apart from words or attached to
them, ideographs one by one or not.

Where punctuation is apart, data sets still keep some of it inside words: "U.S.", "3.5", "AL-AIN", "'s". Which, is
learned from the words themselves, by what is on both sides of the character.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from bertie.spec import Spec
from bertie.text.segmenters import IDEOGRAPHS

_CHUNK = re.compile(r"\S+")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_PLAIN = re.compile(r"[A-Za-z0-9]+")
ENDS = frozenset(
    '.,;:!?…"()[]“”„«»‹›。，！？；：、（）「」『』《》'
)  # what stands at the end or the beginning of clauses
# On the sides of a character: nothing, a digit, one letter alone, more letters, punctuation, anything else.
START, END, DIGIT, LETTER, LETTERS, MARK, OTHER = "^", "$", "0", "a", "w", "p", "x"
BACK, ON = "<", ">"  # joined to what is before, to what follows


class WordSplit(Spec):
    """By default as WordPiece splits: each punctuation character and each ideograph is a word of its own."""

    punctuation: Literal["apart", "attached"] = "apart"
    ideographs: Literal["apart", "joined"] = "apart"
    # Where punctuation stays in a word nevertheless: the sides as above with the character between them, and to which
    # side it is joined. "0.0<" and "0.0>": a point between digits, to both.
    joined: tuple[str, ...] = ()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The characters (start, end) of each word."""
        found = []
        for match in _CHUNK.finditer(text):
            cuts = [0, *self._cuts(match[0]), len(match[0])]
            found += [(match.start() + start, match.start() + end) for start, end in pairwise(cuts)]
        return found

    def _cuts(self, chunk: str) -> list[int]:
        if _PLAIN.fullmatch(chunk):
            return []
        cuts = set[int]()
        for place, character in enumerate(chunk):
            if is_punctuation(character):
                if self.punctuation == "attached":
                    continue
                context = _before(chunk, place) + character + _after(chunk, place)
                cuts |= {cut for side, cut in ((BACK, place), (ON, place + 1)) if context + side not in self.joined}
            elif self.ideographs == "apart" and _IDEOGRAPH.match(character):
                cuts |= {place, place + 1}
        marks = {place for place in cuts if place < len(chunk) and unicodedata.category(chunk[place])[0] == "M"}
        return sorted(cuts - marks - {0, len(chunk)})


class SplitCounts:
    """Counts how the words of training sentences are split."""

    def __init__(self) -> None:
        self.num_apart = self.num_attached = self.num_single = self.num_longer = 0
        self.votes = Counter[str]()

    def add(self, words: Sequence[str]) -> None:
        for number, word in enumerate(words):
            if not word or _PLAIN.fullmatch(word):
                continue
            if num_ideographs := len(_IDEOGRAPH.findall(word)):
                self.num_longer += num_ideographs > 1
                self.num_single += num_ideographs == 1
            if not any(map(is_punctuation, word)):
                continue
            if any(map(str.isalnum, word)):
                self.num_attached += word[0] in ENDS or word[-1] in ENDS
            else:
                self.num_apart += 1
            before = words[number - 1] if number else ""
            after = words[number + 1] if number + 1 < len(words) else "the next sentence"
            self._vote(before, word, after)

    def _vote(self, before: str, word: str, after: str) -> None:
        """A neighbouring word may have been attached in the text, or not: both are counted."""
        last = len(word) - 1
        for place, character in enumerate(word):
            if not is_punctuation(character):
                continue
            lefts = {_before(word, place)} if place else {START, _before(before, len(before))}
            rights = {_after(word, place)} if place < last else {END, _after(after, -1)}
            for left in lefts:
                for right in rights:
                    context = left + character + right
                    # "Mr." has a space behind it, so it says nothing about a point with letters on both sides.
                    if left != START and (not place or place < last or right in (END, MARK)):
                        self.votes[context + BACK] += 1 if place else -1
                    if right != END:
                        self.votes[context + ON] += 1 if place < last else -1

    def split(self) -> WordSplit:
        ideographs: Literal["apart", "joined"] = "joined" if self.num_longer > self.num_single else "apart"
        if self.num_attached > self.num_apart:
            return WordSplit(punctuation="attached", ideographs=ideographs)
        joined = sorted(context for context, count in self.votes.items() if count > 0)
        return WordSplit(ideographs=ideographs, joined=tuple(joined))


@lru_cache(10_000)
def is_punctuation(character: str) -> bool:
    """Also the symbols of ASCII, as WordPiece has it."""
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


def _before(chunk: str, place: int) -> str:
    return START if not place else _kind(chunk[place - 1], chunk[place - 2 : place - 1])


def _after(chunk: str, place: int) -> str:
    return END if place + 1 >= len(chunk) else _kind(chunk[place + 1], chunk[place + 2 : place + 3])


def _kind(character: str, further: str) -> str:
    """`further` is the character behind it, seen from the punctuation."""
    if character.isdigit():
        return DIGIT
    if character.isalnum():
        return LETTERS if further.isalnum() else LETTER
    return MARK if is_punctuation(character) else OTHER
