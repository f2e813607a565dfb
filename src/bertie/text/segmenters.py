"""Splits text without spaces into words: by `rjieba`, or by the spaces of pre-segmented input.

A user dictionary has one word a line, with an optional frequency after white space; "#" starts a comment line.
"""

import hashlib
import importlib.metadata
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from bertie.errors import InputError, SpecError
from bertie.text.reading.lines import Lines, open_bytes

# What WordPiece isolates, without the ranges in which its implementations differ (U+2B820 to U+2B91F).
IDEOGRAPH_RANGES = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
IDEOGRAPHS = "".join(f"{chr(first)}-{chr(last)}" for first, last in IDEOGRAPH_RANGES)

SegmenterName = Literal["jieba", "spaces", "none"]
Entries = tuple[tuple[str, int | None], ...]

_WORD_OR_REST = re.compile(r"\w+|\W+")


class Segmenter(Protocol):
    """Cuts text into words. Values are small and can be pickled, so that every worker builds its own."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def digest(self) -> str:
        """sha256 over name, version, options and dictionary: what decides the words."""

    def cut(self, text: str) -> list[str]:
        """Consecutive parts of the text; put together they are the text."""


def load_segmenter(
    name: SegmenterName = "jieba", dictionary: Path | None = None, new_words: bool = True
) -> Segmenter | None:
    """None for "none": then every ideograph is a word of its own."""
    if name == "jieba":
        return JiebaSegmenter(read_dictionary(dictionary) if dictionary else (), new_words)
    if dictionary:
        raise SpecError(f"the segmenter {name!r} uses no dictionary", where=str(dictionary), hint='choose "jieba"')
    if name not in ("spaces", "none"):
        raise SpecError(f"there is no segmenter {name!r}", hint='known: "jieba", "spaces" and "none"')
    return SpaceSegmenter() if name == "spaces" else None


class JiebaSegmenter:
    """Words of the built-in dictionary and of the user's; `new_words` also lets its statistics join characters."""

    name = "rjieba"

    def __init__(self, entries: Entries = (), new_words: bool = True):
        self.entries, self.new_words = entries, new_words

    @property
    def version(self) -> str:
        return importlib.metadata.version("rjieba")

    @cached_property
    def digest(self) -> str:
        return _digest(self.name, self.version, self.new_words, self.entries)

    @cached_property
    def _native(self) -> Any:
        import rjieba  # a tenth of a second, which text without ideographs should not cost

        native = rjieba.Jieba()
        for word, frequency in self.entries:
            native.add_word(word, frequency, None)
        return native

    def cut(self, text: str) -> list[str]:
        words: list[str] = self._native.cut(text, self.new_words)
        return words

    def __getstate__(self) -> dict[str, Any]:
        return {"entries": self.entries, "new_words": self.new_words}


class SpaceSegmenter:
    """Input whose words are separated by spaces already; punctuation written at a word is taken off it."""

    name, version = "spaces", "1"

    @property
    def digest(self) -> str:
        return _digest(self.name, self.version, False, ())

    def cut(self, text: str) -> list[str]:
        return _WORD_OR_REST.findall(text)


def read_dictionary(path: Path) -> Entries:
    """The words in the file's order; a word that is given twice with two frequencies is a mistake."""
    found: dict[str, tuple[int | None, int]] = {}
    with open_bytes(path) as stream:
        lines = Lines(stream, str(path))
        for line in lines:
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            where = f"{path}:{lines.number}"
            # A third column is a part of speech in jieba's own files. It does not change the words.
            if len(parts) > 3:
                raise InputError(
                    f"the line has {len(parts)} columns", where=where, hint="write a word and, if wanted, its frequency"
                )
            frequency = _frequency(parts[1], where) if len(parts) > 1 else None
            if parts[0] in found and found[parts[0]][0] != frequency:
                first = found[parts[0]][1]
                raise InputError(
                    f"{parts[0]!r} has another frequency on line {first}", where=where, hint="remove one of the two"
                )
            found.setdefault(parts[0], (frequency, lines.number))
    return tuple((word, frequency) for word, (frequency, _) in found.items())


def _frequency(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise InputError(f"the frequency {text!r} is not a positive number", where=where, hint="write a whole number")
    return int(text)


def _digest(name: str, version: str, new_words: bool, entries: Entries) -> str:
    text = json.dumps([name, version, new_words, entries], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
