"""Cleans the text of documents and counts what was changed. Line breaks are kept: a line is a paragraph.

In this order: repaired encoding (by `ftfy`, where chosen), line ends, control and invisible characters, Unicode
normalisation, white space inside lines, the least length. Clean text costs a few searches and no copy.
"""

import importlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Literal

from pydantic import Field

from bertie.errors import CapabilityError
from bertie.spec import Spec

LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
SPACES = "\t\x1f\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
# Joiners (U+200C, U+200D), variation selectors and tags are kept: they are part of words and of emoji.
INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
INVISIBLE += "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f"
INVISIBLE += "\u3164\ufeff\uffa0\ufff9\ufffa\ufffb\ufffe\uffff"

# Character -> what it becomes, and the count it adds to. Later entries win.
_CHANGES = {character: ("", "control_characters") for character in CONTROLS if character != "\n"}
_CHANGES |= dict.fromkeys(INVISIBLE, ("", "invisible_characters"))
_CHANGES |= dict.fromkeys(LINE_ENDS, ("\n", "line_ends_unified"))
_CHANGES |= dict.fromkeys(SPACES, (" ", "white_space_replaced"))
_ODD = re.compile(f"[{''.join(sorted(_CHANGES))}]")
_RUN = re.compile("  +")


class Cleaning(Spec):
    """What is done to the text of a document."""

    unicode: Literal["nfc", "nfkc", "none"] = "nfc"
    control_characters: bool = Field(default=True, description="remove control and invisible characters")
    white_space: bool = Field(default=True, description="make one space of each run inside a line, none at its ends")
    min_characters: int = Field(default=0, ge=0, description="a shorter document is left out, and counted")
    fix_encoding: bool = Field(default=False, description="undo wrongly decoded text with `ftfy` (slow)")


class Cleaner:
    """Cleans texts one after another. `counts` has what was done so far; the caller may add and reset it."""

    def __init__(self, options: Cleaning | None = None):
        self.options = options or Cleaning()
        self.counts: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        """The clean text; "" where nothing is left or less than `min_characters`."""
        options = self.options
        if options.fix_encoding and text != (fixed := self._fix(text)):
            self.counts["documents_repaired"] += 1
            text = fixed
        if odd := _ODD.findall(text):
            text = self._without_odd(text, Counter(odd))
        # After the removal: what stood between a letter and its accent is gone by now.
        if options.unicode != "none" and not text.isascii():
            form: Literal["NFC", "NFKC"] = "NFC" if options.unicode == "nfc" else "NFKC"
            if not unicodedata.is_normalized(form, text):
                self.counts["documents_normalized"] += 1
                text = unicodedata.normalize(form, text)
        if options.white_space:
            text = self._fold_spaces(text)
        if not text:
            self.counts["documents_empty"] += 1
        elif len(text) < options.min_characters:
            self.counts["documents_too_short"] += 1
            self.counts["characters_of_too_short"] += len(text)
            return ""
        return text

    def _without_odd(self, text: str, odd: Counter[str]) -> str:
        if pairs := text.count("\r\n") if "\r" in odd else 0:
            text = text.replace("\r\n", "\n")
            self._count("line_ends_unified", pairs)
            odd["\r"] -= pairs
        for character, number in odd.items():
            replacement, key = _CHANGES[character]
            if replacement == " " and not self.options.white_space:
                continue
            if not replacement and not self.options.control_characters:
                continue
            text = text.replace(character, replacement)
            self._count(key, number)
        return text

    def _fold_spaces(self, text: str) -> str:
        if "  " in text:
            text, found = _RUN.subn(" ", text)
            self._count("white_space_runs", found)
        for at_end in (" \n", "\n "):
            if found := text.count(at_end):
                self._count("white_space_at_ends", found)
                text = text.replace(at_end, "\n")
        stripped = text.strip()
        self._count("white_space_at_ends", len(text) - len(stripped))
        return stripped

    def _count(self, key: str, number: int) -> None:
        if number:
            self.counts[key] += number

    @cached_property
    def _fix(self) -> Callable[[str], str]:
        try:
            fix: Callable[[str], str] = importlib.import_module("ftfy").fix_encoding
        except ImportError:
            raise CapabilityError(
                "repairing wrongly decoded text needs `ftfy`, which is not installed", hint="pip install ftfy"
            ) from None
        return fix
