"""Cuts a long passage into overlapping windows, each with the whole question before it, and finds the best spans in the
model's outputs.

Axes: P tokens of the passage, n tokens of a window with its question and special tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bertie.errors import InputError
from bertie.text.tokenizers.tokenizer import Tokenizer

LEAST = 16  # tokens of the passage in a window; less would leave no context


@dataclass(frozen=True)
class PassageWindow:
    fields: dict[str, np.ndarray]  # of the sample
    first: int  # token of the passage that stands here
    size: int  # tokens of the passage that stand here
    before: int  # tokens of the sample that stand before them

    def place_of(self, begin: int, end: int) -> tuple[int, int] | None:
        """Where a stretch of the passage, from its first to its last token, stands here; None where not all of it."""
        if not self.first <= begin <= end < self.first + self.size:
            return None
        shift = self.before - self.first
        return begin + shift, end + shift


@dataclass(frozen=True)
class PassageWindows:
    offsets: np.ndarray  # [P, 2] characters of the passage
    rows: tuple[PassageWindow, ...]

    def tokens_of(self, start: int, stop: int) -> tuple[int, int] | None:
        """The first and the last token with any of these characters; None where none has."""
        touched = np.flatnonzero((self.offsets[:, 0] < stop) & (self.offsets[:, 1] > start))
        return (int(touched[0]), int(touched[-1])) if len(touched) else None

    def characters_of(self, begin: int, end: int) -> tuple[int, int]:
        return int(self.offsets[begin, 0]), int(self.offsets[end, 1])


def windows_of(tokenizer: Tokenizer, question: str, passage: str, length: int, shared: int) -> PassageWindows:
    """Neighbours share `shared` tokens of the passage, but at most half of what has room."""
    whole = tokenizer.encode(question, passage)
    inside = np.flatnonzero(whole.texts == 1)
    if not len(inside):
        raise InputError("the passage gives no token")
    before, end = int(inside[0]), int(inside[-1]) + 1
    room = length - (len(whole) - (end - before))
    if room < LEAST:
        what = f"the question leaves {max(room, 0)} of {length} tokens for the passage, and {LEAST} are needed"
        raise InputError(what, hint="give a larger `max_length`")
    step = room - min(shared, room // 2)
    rows = []
    for start in range(before, end, step):
        stop = min(start + room, end)
        kept = np.r_[0:before, start:stop, end : len(whole)]
        fields = {"tokens": whole.ids[kept], "segments": whole.segments[kept]}
        rows.append(PassageWindow(fields, start - before, stop - start, before))
        if stop == end:
            break
    return PassageWindows(whole.offsets[before:end], tuple(rows))


class TokenSpan(NamedTuple):
    score: float
    begin: int  # tokens of the passage
    end: int  # the last one


def best_spans(outputs: Sequence[np.ndarray], windows: PassageWindows, longest: int, kept: int = 20) -> list[TokenSpan]:
    """The best first, each once, of at most `longest` tokens. `outputs` are logits [n, 2] of begin and end."""
    found: dict[tuple[int, int], float] = {}
    for logits, window in zip(outputs, windows.rows, strict=True):
        begins, ends = logits[window.before : window.before + window.size].T.astype(np.float64)
        scores = np.full((min(longest, window.size), window.size), -np.inf)  # [tokens after the first, first token]
        for more, row in enumerate(scores):
            row[: window.size - more] = begins[: window.size - more] + ends[more:]
        flat = scores.ravel()
        best = np.argpartition(-flat, kept)[:kept] if len(flat) > kept else np.arange(len(flat))
        for place in best[np.isfinite(flat[best])].tolist():
            more, begin = divmod(place, window.size)
            span = window.first + begin, window.first + begin + more
            found[span] = max(float(flat[place]), found.get(span, -np.inf))
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [TokenSpan(score, *span) for span, score in ranked[:kept]]
