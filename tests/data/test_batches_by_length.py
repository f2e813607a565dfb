"""Rows by length: every row once, longest first, within the budget."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertie.data.batching import batches_by_length

lengths_of_rows = st.lists(st.integers(0, 50), max_size=60).map(lambda sizes: np.array(sizes, np.int64))


@given(lengths_of_rows, st.integers(1, 200))
def test_every_row_once_longest_first_within_the_budget(lengths: np.ndarray, budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    order = np.concatenate(batches) if batches else np.array([], int)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert (np.diff(lengths[order]) <= 0).all()
    assert all(len(rows) for rows in batches)
    for rows in batches:
        assert lengths[rows].sum() <= budget or len(rows) == 1


@given(lengths_of_rows, st.integers(1, 200))
def test_the_next_row_would_not_have_fitted(lengths: np.ndarray, budget: int) -> None:
    for rows, following in pairwise(batches_by_length(lengths, budget)):
        assert lengths[rows].sum() + lengths[following[0]] > budget


def test_equal_lengths_keep_their_order() -> None:
    (rows,) = batches_by_length(np.array([3, 5, 3, 5]), 100)
    assert rows.tolist() == [1, 3, 0, 2]


def test_unsigned_lengths_are_lengths() -> None:
    (rows,) = batches_by_length(np.array([3, 0, 5], np.uint32), 100)
    assert rows.tolist() == [2, 0, 1]


def test_no_rows_no_batches() -> None:
    assert list(batches_by_length(np.array([], np.int64), 10)) == []
