"""Lengths after truncation, against `tokenizers`' own truncation and against cutting row by row."""

import numpy as np
import pytest
import tokenizers

from bertie.errors import TokenizerError
from bertie.text.tokenizers.truncation import longest_first, room_for_text, truncate_flat


def test_longest_first_is_the_rule_of_tokenizers() -> None:
    pipeline = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    pipeline.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    for first in range(8):
        for second in range(8):
            for room in range(1, 14):
                pipeline.enable_truncation(room, strategy="longest_first")
                ids = pipeline.encode("a " * first, "b " * second).ids
                assert longest_first(first, second, room) == (ids.count(0), ids.count(1)), (first, second, room)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 1), (2, 0), (0, 2)])
def test_rows_are_cut_inside_their_special_tokens(side: str, before: int, after: int) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 12, 200) + before + after
    ids = np.arange(lengths.sum())
    for max_length in range(max(before + after, 1), 15):
        found = truncate_flat(ids, lengths, max_length, before, after, side)
        rows = np.split(ids, np.cumsum(lengths)[:-1])
        for row, kept, num_truncated in zip(rows, found, found.num_truncated, strict=True):
            excess = max(len(row) - max_length, 0)
            middle = row[before : len(row) - after]
            middle = middle[excess:] if side == "left" else middle[: len(middle) - excess]
            assert kept.tolist() == [*row[:before], *middle, *row[len(row) - after :]]
            assert num_truncated == excess


def test_nothing_is_cut_without_a_limit() -> None:
    found = truncate_flat(np.arange(5), np.array([2, 0, 3]), None, 0, 0)
    assert [row.tolist() for row in found] == [[0, 1], [], [2, 3, 4]]
    assert found.num_truncated.tolist() == [0, 0, 0]


def test_no_rows_at_all() -> None:
    found = truncate_flat(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int64), 4, 1, 1)
    assert len(found) == 0
    assert found.ids.dtype == np.int64


@pytest.mark.parametrize(("max_length", "num_special"), [(1, 2), (0, 0), (-3, 0)])
def test_too_little_room_is_an_error(max_length: int, num_special: int) -> None:
    with pytest.raises(TokenizerError, match=f"`max_length={max_length}` leaves no room .* at least"):
        room_for_text(max_length, num_special)


def test_room_for_nothing_but_special_tokens_is_allowed() -> None:
    assert room_for_text(2, 2) == 0
