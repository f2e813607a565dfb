"""Plans of runs: every row once and in order, and never dearer than one call a row."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Ragged
from bertie.nn.attention.row_runs import CALL_COST, PADDING_COST, Run, plan_runs

pairs = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=40)


def rows_of(sizes: list[int]) -> Ragged:
    return Ragged(torch.zeros(sum(sizes)), torch.tensor(sizes))


def cost(run: Run) -> float:
    area = len(run.query.lengths) * run.query.longest * run.key.longest
    padded = len(set(run.query.lengths)) > 1 or len(set(run.key.lengths)) > 1
    return CALL_COST + (PADDING_COST if padded else 1) * area


@given(pairs)
def test_each_row_is_in_exactly_one_run_in_order(sizes: list[tuple[int, int]]) -> None:
    query, key = [q for q, _ in sizes], [k for _, k in sizes]
    runs = plan_runs(rows_of(query), rows_of(key))
    assert [size for run in runs for size in run.query.lengths] == query
    assert [size for run in runs for size in run.key.lengths] == key
    for side in ("query", "key"):
        start = 0
        for run in runs:
            stretch = getattr(run, side)
            assert stretch.start == start
            start += sum(stretch.lengths)


@given(pairs)
def test_a_plan_never_costs_more_than_one_call_a_row(sizes: list[tuple[int, int]]) -> None:
    runs = plan_runs(rows_of([q for q, _ in sizes]), rows_of([k for _, k in sizes]))
    alone = sum(CALL_COST + q * k for q, k in sizes)
    assert sum(cost(run) for run in runs) <= alone * (1 + 1e-9)


def test_equal_rows_are_one_run_without_padding() -> None:
    rows = rows_of([20] * 30)
    (run,) = plan_runs(rows, rows)
    assert run.padded_keys is None
    states = torch.randn(600, 2, 4)
    assert run.query.rectangle(states).data_ptr() == states.data_ptr()


def test_very_different_rows_are_not_padded_together() -> None:
    rows = rows_of([500, 5])
    assert [run.query.lengths for run in plan_runs(rows, rows)] == [(500,), (5,)]


def test_short_rows_of_any_length_share_a_call() -> None:
    rows = rows_of([3, 7, 1, 5])
    assert len(plan_runs(rows, rows)) == 1


@given(pairs)
def test_padded_keys_mark_what_exists(sizes: list[tuple[int, int]]) -> None:
    runs = plan_runs(rows_of([q for q, _ in sizes]), rows_of([k for _, k in sizes]))
    for run in runs:
        lengths = run.key.lengths
        if run.padded_keys is None:
            assert len(set(lengths)) == 1
        else:
            assert run.padded_keys.shape == (len(lengths), 1, 1, max(lengths))
            assert run.padded_keys.sum(-1).flatten().tolist() == list(lengths)
