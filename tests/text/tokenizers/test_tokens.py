"""What tokenizers hand on."""

import numpy as np

from bertie.text.tokenizers.tokens import FlatIds, SpecialTokens, Tokens


def test_texts_tell_a_pair_apart_where_segments_do_not() -> None:
    special = np.array([True, False, True, True, False, False, True])
    zeros = np.zeros(7, dtype=np.int64)
    tokens = Tokens(zeros, np.zeros((7, 2), dtype=np.int64), zeros, zeros, special, second_start=4)
    assert tokens.texts.tolist() == [-1, 0, -1, -1, 1, 1, -1]
    assert len(tokens) == 7


def test_rows_of_flat_ids_are_views() -> None:
    flat = FlatIds(np.arange(5), np.array([2, 0, 3]), np.zeros(3, dtype=np.int64))
    rows = list(flat)
    assert [row.tolist() for row in rows] == [[0, 1], [], [2, 3, 4]]
    assert rows[2].base is flat.ids


def test_special_ids_are_listed_once() -> None:
    assert SpecialTokens(pad=5, unk=5, first=None, separator=0).ids() == [0, 5]
