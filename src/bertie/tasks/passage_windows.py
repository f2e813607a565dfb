"""Windows over a long passage, each with the whole question before it: texts enter, samples with character offsets leave."""

import numpy as np

from bertie.errors import InputError
from bertie.text.tokenizer import Tokenizer

Fields = dict[str, np.ndarray]
LEAST = 16  # tokens of the passage in a window; less would leave no context


def windows_of(
    tokenizer: Tokenizer, question: str, passage: str, length: int, shared: int
) -> list[tuple[Fields, np.ndarray]]:
    """Offsets [n, 2] are characters of the passage, -1 for every other token. Neighbours share `shared` tokens."""
    whole = tokenizer.encode(question, passage)
    inside = np.flatnonzero(whole.texts == 1)
    if not len(inside):
        raise InputError("the passage has no token")
    first, last = int(inside[0]), int(inside[-1]) + 1
    room = length - (len(whole) - (last - first))
    if room < LEAST:
        what = f"the question leaves {max(room, 0)} of {length} tokens for the passage"
        raise InputError(what, hint="give a larger --length")
    step = max(1, room - min(shared, room // 2))
    offsets = np.where((whole.texts == 1)[:, None], whole.offsets, -1)
    windows = []
    for start in range(first, max(last - room, first) + step, step):
        end = min(start + room, last)
        kept = np.r_[0:first, start:end, last : len(whole)]
        windows.append(({"tokens": whole.ids[kept], "segments": whole.segments[kept]}, offsets[kept]))
        if end == last:
            break
    return windows


def places_of(offsets: np.ndarray, start: int, length: int) -> tuple[int, int] | None:
    """The first and the last token of a stretch of characters, where the window holds all of it."""
    inside = np.flatnonzero((offsets[:, 0] < start + length) & (offsets[:, 1] > start) & (offsets[:, 0] >= 0))
    if not len(inside):
        return None
    begin, end = int(inside[0]), int(inside[-1])
    whole = offsets[begin, 0] <= start and offsets[end, 1] >= start + length
    return (begin, end) if whole else None


def best_spans(
    outputs: list[np.ndarray], offsets: list[np.ndarray], longest: int, tried: int = 20, kept: int = 20
) -> list[tuple[float, int, int]]:
    """(score, first character, end) of the best stretches of the passage over all windows, each once."""
    found: dict[tuple[int, int], float] = {}
    for logits, places in zip(outputs, offsets, strict=True):
        inside = np.flatnonzero(places[:, 0] >= 0)
        begins = inside[np.argsort(-logits[inside, 0], kind="stable")[:tried]]
        ends = inside[np.argsort(-logits[inside, 1], kind="stable")[:tried]]
        for begin in begins.tolist():
            for end in ends.tolist():
                if begin <= end < begin + longest:
                    span = int(places[begin, 0]), int(places[end, 1])
                    score = float(logits[begin, 0] + logits[end, 1])
                    found[span] = max(score, found.get(span, score))
    ranked = sorted(((score, *span) for span, score in found.items()), reverse=True)
    return ranked[:kept]
