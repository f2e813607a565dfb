"""Truncates texts to a limit. The rule for pairs is "longest first", as in `tokenizers`."""

import numpy as np

from bertie.errors import TokenizerError
from bertie.text.tokenizers.tokens import FlatIds


def room_for_text(max_length: int, num_special: int) -> int:
    """The number of tokens that are left for the text beside its special tokens."""
    if max_length < num_special or max_length < 1:
        raise TokenizerError(
            f"`max_length={max_length}` leaves no room for the {num_special} special tokens",
            hint=f"give at least `max_length={max(num_special, 1)}`",
        )
    return max_length - num_special


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Lengths that are kept of a pair of `first` and `second` tokens in `room` tokens: the longer text is cut first."""
    if first + second <= room:
        return first, second
    shorter, longer = min(first, second), max(first, second)
    longer = shorter if shorter > room else max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room // 2 + room % 2
    return (longer, shorter) if first > second else (shorter, longer)


def truncate_flat(
    ids: np.ndarray, lengths: np.ndarray, max_length: int | None, num_before: int, num_after: int, side: str = "right"
) -> FlatIds:
    """Cuts rows of `ids` [T] to max_length, but never the `num_before` and `num_after` special tokens at their ends."""
    ids = ids.astype(np.int64, copy=False)
    lengths = lengths.astype(np.int64, copy=False)
    nothing = np.zeros(len(lengths), dtype=np.int64)
    if max_length is None:
        return FlatIds(ids, lengths, nothing)
    room = room_for_text(max_length, num_before + num_after)
    excess = np.maximum(lengths - max_length, 0)
    if not excess.any():
        return FlatIds(ids, lengths, nothing)
    starts = np.cumsum(lengths) - lengths
    cut = np.flatnonzero(excess)
    cut_starts = starts[cut] + num_before + (room if side == "right" else 0)
    # A cut starts where 1 is added and ends where 1 is subtracted, so a running sum above zero marks what is removed.
    steps = np.zeros(len(ids) + 1, dtype=np.int8)
    steps[cut_starts] += 1
    steps[cut_starts + excess[cut]] -= 1
    keep = np.cumsum(steps[:-1], dtype=np.int8) == 0
    return FlatIds(ids[keep], lengths - excess, excess)
