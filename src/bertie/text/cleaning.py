"""A document's text in, clean text out, and counts of what was changed. Line breaks are kept: a line is a paragraph.

In this order: mended encoding (by `ftfy`, when asked for), Unicode normalisation, line ends, control characters and
invisible characters, white space inside lines, the least length. Clean text costs a few searches and no copy.
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

# Joiners (U+200C, U+200D) and variation selectors are kept: they are part of words and of emoji.
CONTROLS = "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"
INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
INVISIBLE += "\uffa0\ufff9-\ufffb\ufffe\uffff\U000e0001\U000e007f"
LINE_ENDS = "\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
SPACES = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"

_LINE_END = re.compile(f"\r\n|[{LINE_ENDS}]")
_CONTROL = re.compile(f"[{CONTROLS}]+")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_ODD_SPACE = re.compile(f"[{SPACES[1:]}]")
_SPACES = re.compile("  +")
_UNCLEAN_ASCII = re.compile("[\x00-\x09\x0b-\x1f\x7f]")
_UNCLEAN = re.compile(f"[{LINE_ENDS}{CONTROLS}{INVISIBLE}{SPACES[1:]}]")


class Cleaning(Spec):
    """What is done to the text of a document."""

    normalise: Literal["nfc", "nfkc", "none"] = "nfc"
    control_characters: bool = Field(default=True, description="remove control and invisible characters")
    white_space: bool = Field(default=True, description="make one space of each run inside a line, none at its ends")
    min_characters: int = Field(default=0, ge=0, description="a shorter document is left out, and counted")
    mend_encoding: bool = Field(default=False, description="undo wrongly decoded text with `ftfy` (slow)")


class Cleaner:
    """Cleans texts one after another. `counts` says what was done so far; the caller may add and reset it."""

    def __init__(self, options: Cleaning | None = None):
        self.options = options or Cleaning()
        self.counts: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        """The clean text; "" where nothing is left or less than `min_characters`."""
        options = self.options
        if options.mend_encoding and text != (mended := self._mend(text)):
            self.counts["documents_mended"] += 1
            text = mended
        is_ascii = text.isascii()
        if not is_ascii and options.normalise != "none":
            form: Literal["NFC", "NFKC"] = "NFC" if options.normalise == "nfc" else "NFKC"
            if not unicodedata.is_normalized(form, text):
                self.counts["documents_normalised"] += 1
                text = unicodedata.normalize(form, text)
        if (_UNCLEAN_ASCII if is_ascii else _UNCLEAN).search(text):
            text = self._without_odd_characters(text)
        if options.white_space:
            text = self._fold_spaces(text)
        if not text:
            self.counts["documents_empty"] += 1
        elif len(text) < options.min_characters:
            self.counts["documents_too_short"] += 1
            self.counts["characters_of_too_short"] += len(text)
            return ""
        return text

    def _without_odd_characters(self, text: str) -> str:
        text, found = _LINE_END.subn("\n", text)
        self._count("line_ends_unified", found)
        if self.options.control_characters:
            for key, pattern in (("control_characters", _CONTROL), ("invisible_characters", _INVISIBLE)):
                before = len(text)
                text = pattern.sub("", text)
                self._count(key, before - len(text))
        return text

    def _fold_spaces(self, text: str) -> str:
        text, found = _ODD_SPACE.subn(" ", text)
        self._count("white_space_replaced", found)
        if "  " in text:
            text, found = _SPACES.subn(" ", text)
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
    def _mend(self) -> Callable[[str], str]:
        try:
            mend: Callable[[str], str] = importlib.import_module("ftfy").fix_encoding
        except ImportError:
            raise CapabilityError(
                "mending wrongly decoded text needs `ftfy`, which is not installed", hint="pip install ftfy"
            ) from None
        return mend
