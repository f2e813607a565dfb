"""Corrects words that are often written wrongly: turns a user's table into replacements that a tokenizer makes.

One right word a line, and behind it the wrong ones: `花呗: 花被, 花珥, 花钗`, or all of them with tabs between. The
replacements become the first steps of the tokenizer itself: they are saved with it, and `transformers` does them too.
Longer wrong words go first. Where words are given one by one, as for tags, each is corrected alone. What is counted is
found by the engine of `tokenizers`: to Python's own, accents and vowel signs are no part of a word, but ² and ① are.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Regex, normalizers, pre_tokenizers

from bertie.errors import InputError
from bertie.text.reading.lines import Lines, open_bytes, refuse
from bertie.text.segmenters import IDEOGRAPHS

MARK = "(?#confusable)"  # a comment in the pattern, which distinguishes these steps from a tokenizer's own
COMMENT = "#"
_BETWEEN = re.compile(r"[:：\t]")
_BETWEEN_WRONG = re.compile(r"[,，、;；\t]")
# Words of letters are whole words: `form` does not stand in "inform". Ideographs have no such ends.
_LETTER = rf"[^\W{IDEOGRAPHS}]"
_LETTERS_OUT = normalizers.Replace(Regex(_LETTER), "")
_ENDS = re.compile(r"\(\?<?!\[[^]]*\]\)")  # of words in a pattern: what must not stand before or behind them
_ESCAPED_WORDS = re.compile(r"(?:\\.|[^\\|])+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Step(NamedTuple):
    """One replacement. The pattern is for the engine of `tokenizers` alone."""

    pattern: str
    right: str

    @property
    def wrong(self) -> tuple[str, ...]:
        return _words(self.pattern)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where the tokenizer replaces something."""
        if not any(word in text for word in self.wrong):
            return []  # as in most texts; the engine is slow
        isolated, removed = _splits(self.pattern)
        try:
            others = {place for _, place in removed.pre_tokenize_str(text)}
            return [place for _, place in isolated.pre_tokenize_str(text) if place not in others]
        except UnicodeEncodeError:
            return []  # no tokenizer reads it, which is reported where it is read


@dataclass(frozen=True)
class ConfusableWords:
    """The replacements in their order."""

    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, rights: Mapping[str, str]) -> "ConfusableWords":
        """From each wrong word to the right one."""
        ordered = sorted(rights.items(), key=lambda pair: (-len(pair[0]), pair[1], pair[0]))
        grouped = groupby(ordered, key=lambda pair: (len(pair[0]), pair[1]))
        return cls(tuple(Step(_pattern(wrong for wrong, _ in pairs), right) for (_, right), pairs in grouped))

    @classmethod
    def read(cls, file: Path) -> "ConfusableWords":
        rights: dict[str, str] = {}
        with open_bytes(file) as stream:
            lines = Lines(stream, str(file))
            for line in lines:
                if not line.strip() or line.lstrip().startswith(COMMENT):
                    continue
                for wrong, right in _pairs(line, lines):
                    if rights.setdefault(wrong, right) != right:
                        what = f"{wrong!r} is replaced by {right!r} here and by {rights[wrong]!r} above"
                        refuse(lines.name, what, lines.number, "keep one of them")
        if not rights:
            raise InputError("the table has no words", where=str(file), hint="write lines like 花呗: 花被, 花钗")
        table = cls.of(rights)
        for right in dict.fromkeys(rights.values()):
            if (changed := table.applied(right)[0]) != right:
                what = f"the right word {right!r} would itself be replaced, by {changed!r}"
                raise InputError(what, where=str(file), hint="no right word may hold a wrong one")
        return table

    @classmethod
    def within(cls, normalizer: Mapping[str, Any] | None) -> "ConfusableWords":
        """Those of a tokenizer, from that part of its tokenizer.json."""
        steps, ahead = list[Step](), [normalizer or {}]
        while ahead:
            one = ahead.pop(0)
            ahead[:0] = one.get("normalizers", [])  # steps may be within steps
            pattern = one["pattern"].get("Regex", "") if one.get("type") == "Replace" else ""
            if pattern.startswith(MARK):
                steps.append(Step(pattern, one["content"]))
        return cls(tuple(steps))

    def before(self, normalizer: normalizers.Normalizer | None) -> normalizers.Normalizer:
        """A tokenizer's own steps, with the replacements before them."""
        first = [normalizers.Replace(Regex(step.pattern), step.right) for step in self.steps]
        return normalizers.Sequence([*first, *([] if normalizer is None else [normalizer])])

    def check_beside(self, others: "ConfusableWords", where: str | None = None) -> None:
        """The others are a tokenizer's own. What each table puts right must be the same under both, these first."""
        both = ConfusableWords((*self.steps, *others.steps))
        named = [(step, name) for table, name in ((others, "in it"), (self, "in the new one")) for step in table.steps]
        for step, name in named if self.steps and others.steps else ():
            for word in (step.right, *step.wrong):
                if (changed := both.applied(word)[0]) != step.right:
                    role = "a right word" if word == step.right else f"a wrong one for {step.right!r}"
                    what = f"there is a table of words already, and {word!r}, {role} {name}, would become {changed!r}"
                    hint = "change the new table, or start with a model that has none"
                    raise InputError(what, where=where, hint=hint)

    def applied(self, text: str) -> tuple[str, int]:
        """The text as the tokenizer reads it, and how many words were replaced."""
        total = 0
        for step in self.steps:
            if places := step.places(text):
                ends = [0, *(end for _, end in places)]
                starts = [*(start for start, _ in places), len(text)]
                text = step.right.join(text[end:start] for end, start in zip(ends, starts, strict=True))
                total += len(places)
        return text, total

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The characters of the text, as it is written, that are replaced."""
        places, found = [(place, place + 1) for place in range(len(text))], set[tuple[int, int]]()
        for step in self.steps:
            for start, end in reversed(step.places(text)):
                whole = places[start][0], places[end - 1][1]
                text, places[start:end] = text[:start] + step.right + text[end:], [whole] * len(step.right)
                found.add(whole)
        return sorted(found)

    def widened(self, text: str, offsets: np.ndarray) -> np.ndarray:
        """[n, 2] offsets of tokens, where those of a replaced word are the whole wrong word: `tokenizers` tells its
        last character alone."""
        offsets = offsets.copy()
        for start, end in self.spans(text):
            inside = (offsets[:, 0] < end) & (offsets[:, 1] > start)
            offsets[inside, 0] = np.minimum(offsets[inside, 0], start)
            offsets[inside, 1] = np.maximum(offsets[inside, 1], end)
        return offsets

    def count(self, value: Any) -> int:
        """How many words of a text, or of a list of texts, are replaced."""
        if isinstance(value, str):
            return self.applied(value)[1]
        if isinstance(value, Mapping):
            value = list(value.values())
        return sum(map(self.count, value)) if isinstance(value, list | tuple) else 0


def _pairs(line: str, lines: Lines) -> Iterator[tuple[str, str]]:
    """Each wrong word of a line, and the right one."""
    right, *others = _BETWEEN.split(line.strip("\r\n"), maxsplit=1)
    right = right.strip()
    wrong = [word.strip() for word in _BETWEEN_WRONG.split(others[0] if others else "") if word.strip()]
    if not right or not wrong:
        what = "the line does not show which words replace which"
        refuse(lines.name, what, lines.number, "write the right word, a colon and the wrong ones: 花呗: 花被, 花钗")
    for word in wrong:
        if word == right:
            refuse(lines.name, f"{word!r} is right and wrong at once", lines.number, "leave it out on one side")
        yield word, right


def _pattern(words: Iterator[str]) -> str:
    return MARK + "|".join(map(_whole, words))


def _whole(word: str) -> str:
    before, after = f"(?<!{_LETTER})", f"(?!{_LETTER})"
    return (before if _is_letter(word[0]) else "") + re.escape(word) + (after if _is_letter(word[-1]) else "")


def _is_letter(sign: str) -> bool:
    return not _LETTERS_OUT.normalize_str(sign)


@lru_cache(10_000)
def _words(pattern: str) -> tuple[str, ...]:
    """Those that a pattern was made of."""
    found = _ESCAPED_WORDS.findall(_ENDS.sub("", pattern.removeprefix(MARK)))
    return tuple(_ESCAPED.sub(r"\1", word) for word in found)


@lru_cache(10_000)
def _splits(pattern: str) -> tuple[pre_tokenizers.Split, pre_tokenizers.Split]:
    """What matches and what does not, and the latter alone: a wrong word inside a longer one is no match."""
    return pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.Split(Regex(pattern), "removed")
