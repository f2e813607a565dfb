"""Misspells a share of the words of a text, as people mistype them.

Words written with letters are mistyped: a neighbouring key, two letters swapped, one dropped or doubled; or the space
before them is lost. Ideographs, each a word of its own, are exchanged for one that sounds or looks alike, by the tables
beside this file and by groups of the user's own. The same draws are made for every word whatever the rate, so that what
a low rate misspells a higher one misspells in the same way.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from pydantic import Field

from bertie.errors import InputError
from bertie.spec import Spec
from bertie.text.reading.lines import Lines, open_bytes, refuse
from bertie.text.segmenters import IDEOGRAPHS

NoiseKind = Literal["keyboard", "swap", "drop", "double", "space", "sound", "look"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)
TABLES = {"sound": "sound_alikes.txt", "look": "look_alikes.txt"}  # a group of ideographs a line
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_LETTERS = rf"[^\W\d_{IDEOGRAPHS}]+"
# A single space before a word can be lost, unless it begins the text.
_WORDS = re.compile(rf"((?<=[^ ]) )?([{IDEOGRAPHS}]|{_LETTERS}(?:['’]{_LETTERS})*)")
_IS_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
COMMENT = "#"


class Misspelt(NamedTuple):
    text: str
    num_words: int  # ideographs are words
    num_changed: int


class Noise(Spec):
    """`rate` is the probability that a word is misspelt. A word that no kind of mistake can change stays as it is: an
    ideograph that is in no table."""

    rate: float = Field(ge=0, le=1)
    kinds: tuple[NoiseKind, ...] = KINDS
    groups: tuple[str, ...] = ()  # ideographs that are taken for each other, beside those of the tables

    def __call__(self, text: str, rng: np.random.Generator) -> Misspelt:
        words = list(_WORDS.finditer(text))
        draws = rng.random((len(words), 3)).tolist()
        parts, end, num_changed = list[str](), 0, 0
        for word, (hit, which, what) in zip(words, draws, strict=True):
            made = self._made_of(word[1] or "", word[2]) if hit < self.rate else []
            if made:
                num_changed += 1
                by_kind = made[int(which * len(made))]
                parts += [text[end : word.start()], by_kind[int(what * len(by_kind))]]
                end = word.end()
        return Misspelt("".join([*parts, text[end:]]), len(words), num_changed)

    def _made_of(self, space: str, word: str) -> list[list[str]]:
        """What each kind of mistake can make of a word and the space before it; kinds that can do nothing are left
        out."""
        if _IS_IDEOGRAPH.match(word):
            tables = [*(table(kind) for kind in TABLES if kind in self.kinds), _others(self.groups)]
            return [[space + other for other in known[word]] for known in tables if word in known]
        made = [[space + other for other in made_by(kind, word)] for kind in MISTAKES if kind in self.kinds]
        lost = [[word]] if space and "space" in self.kinds else []
        return [others for others in (*made, *lost) if others]


def mistype(word: str) -> Iterable[str]:
    near = neighbours()
    for place, letter in enumerate(word):
        for key in near.get(letter.lower(), ""):
            yield word[:place] + (key.upper() if letter.isupper() else key) + word[place + 1 :]


def swap(word: str) -> Iterable[str]:
    return (word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in range(len(word) - 1))


def drop(word: str) -> Iterable[str]:
    """Never the whole word."""
    return (word[:place] + word[place + 1 :] for place in range(len(word)) if len(word) > 1)


def double(word: str) -> Iterable[str]:
    return (word[: place + 1] + word[place:] for place in range(len(word)))


MISTAKES: Mapping[str, Callable[[str], Iterable[str]]] = {
    "keyboard": mistype,
    "swap": swap,
    "drop": drop,
    "double": double,
}


@lru_cache(10_000)
def made_by(kind: str, word: str) -> tuple[str, ...]:
    """All that a kind of mistake can make of a word; never the word itself."""
    return tuple(made for made in MISTAKES[kind](word) if made != word)


@cache
def neighbours() -> Mapping[str, str]:
    """The keys beside, above and below each key."""
    places = {key: (row, column) for row, keys in enumerate(KEYS) for column, key in enumerate(keys)}
    return {
        key: "".join(
            other for other, (r, c) in places.items() if other != key and abs(r - row) <= 1 and abs(c - column) <= 1
        )
        for key, (row, column) in places.items()
    }


@cache
def table(kind: str) -> Mapping[str, str]:
    """The package's own: each ideograph with those that it is taken for."""
    lines = files("bertie.text").joinpath(TABLES[kind]).read_text("utf-8").split("\n")
    return _others(tuple(line for line in lines if line and not line.startswith(COMMENT)))


@lru_cache(16)
def _others(groups: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for sign in group:
            found.setdefault(sign, {}).update(dict.fromkeys(other for other in group if other != sign))
    return {sign: "".join(others) for sign, others in found.items()}


def read_groups(file: Path) -> tuple[str, ...]:
    """The user's: one group of ideographs a line, with or without white space and commas between them."""
    groups = []
    with open_bytes(file) as stream:
        lines = Lines(stream, str(file))
        for line in lines:
            group = re.sub(r"[\s,，、]+", "", line)
            if not group or group.startswith(COMMENT):
                continue
            if wrong := next((sign for sign in group if not _IS_IDEOGRAPH.match(sign)), None):
                refuse(lines.name, f"{wrong!r} is not an ideograph", lines.number, "write one group a line, like 未末")
            if len(set(group)) < 2:
                refuse(lines.name, "a group has two different ideographs or more", lines.number)
            groups.append(group)
    if not groups:
        raise InputError("there are no groups", where=str(file), hint="write lines like 未末")
    return tuple(groups)
