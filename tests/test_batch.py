"""Ragged, Batch and collate against plain Python lists."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Batch, Places, Pointers, Ragged, Sample, collate

lengths = st.lists(st.integers(0, 7), min_size=1, max_size=8)


def ragged(sizes: list[int], *width: int, start: int = 0) -> Ragged:
    """Rows of numbers counted from `start`, each value told apart from every other."""
    total = sum(sizes) * int(np.prod(width, dtype=int))
    values = torch.arange(start, start + total, dtype=torch.float64).reshape(sum(sizes), *width)
    return Ragged(values, torch.tensor(sizes, dtype=torch.int64))


@given(lengths)
def test_rows_starts_positions_and_row_ids(sizes: list[int]) -> None:
    rows = ragged(sizes)
    assert rows.num_rows == len(sizes)
    assert rows.sizes == sizes
    assert rows.longest == max(sizes)
    assert [len(row) for row in rows.rows()] == sizes
    assert torch.cat(rows.rows()).equal(rows.values)
    assert rows.positions.tolist() == [place for size in sizes for place in range(size)]
    assert rows.row_ids.tolist() == [row for row, size in enumerate(sizes) for _ in range(size)]
    assert rows.starts.tolist() == [sum(sizes[:row]) for row in range(len(sizes))]


@given(lengths, st.sampled_from([(), (1,), (2, 3)]), st.sampled_from([0, -1, 7]))
def test_pad_puts_each_row_first_and_the_value_behind(sizes: list[int], width: tuple[int, ...], fill: int) -> None:
    rows = ragged(sizes, *width)
    padded = rows.pad(fill)
    assert padded.shape == (len(sizes), max(sizes), *width)
    for row, (values, size) in enumerate(zip(rows.rows(), sizes, strict=True)):
        assert padded[row, :size].equal(values)
        assert (padded[row, size:] == fill).all()


@given(lengths, st.sampled_from([(), (1,), (2, 3)]))
def test_unpad_is_the_inverse_of_pad(sizes: list[int], width: tuple[int, ...]) -> None:
    rows = ragged(sizes, *width)
    back = rows.unpad(rows.pad(-5))
    assert back.values.equal(rows.values)
    assert back.lengths.equal(rows.lengths)


@given(lengths)
def test_unpad_takes_a_rectangle_of_another_width(sizes: list[int]) -> None:
    rows = ragged(sizes)
    rectangle = torch.randn(len(sizes), max(sizes), 4)
    expected = torch.cat([rectangle[row, :size] for row, size in enumerate(sizes)])
    assert rows.unpad(rectangle).values.equal(expected)
    transposed = rectangle.transpose(1, 2).contiguous().transpose(1, 2)
    assert rows.unpad(transposed).values.equal(expected)


@given(lengths)
def test_gradients_go_through_pad_and_unpad(sizes: list[int]) -> None:
    rows = ragged(sizes, 2)
    values = rows.values.clone().requires_grad_()
    weights = torch.rand(len(sizes), max(sizes), 2, dtype=torch.float64)
    (rows.with_values(values).pad() * weights).sum().backward()
    assert values.grad is not None
    assert values.grad.equal(rows.unpad(weights).values)

    rectangle = weights.clone().requires_grad_()
    (rows.unpad(rectangle).values * 3).sum().backward()
    assert rectangle.grad is not None
    assert rectangle.grad.equal(rows.with_values(torch.full_like(rows.values, 3)).pad())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_join_puts_the_other_behind_row_by_row(sizes: list[tuple[int, int]]) -> None:
    left, right = ragged([a for a, _ in sizes]), ragged([b for _, b in sizes], start=1000)
    joined = left.join(right)
    expected = [[*a.tolist(), *b.tolist()] for a, b in zip(left.rows(), right.rows(), strict=True)]
    assert [row.tolist() for row in joined.rows()] == expected
    assert joined.lengths.tolist() == [a + b for a, b in sizes]


def test_join_refuses_another_number_of_rows() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ragged([1, 2]).join(ragged([1]))


@given(lengths, st.integers(0, 9))
def test_last_keeps_the_end_of_each_row(sizes: list[int], count: int) -> None:
    rows = ragged(sizes)
    kept = rows.last(count)
    assert [row.tolist() for row in kept.rows()] == [row.tolist()[max(0, len(row) - count) :] for row in rows.rows()]


@given(lengths)
def test_with_values_does_not_mix_up_what_was_computed(sizes: list[int]) -> None:
    rows = ragged(sizes)
    before = (rows.sizes, rows.longest, rows.starts, rows.row_ids, rows.positions)
    other = rows.with_values(rows.values * 2)
    after = (other.sizes, other.longest, other.starts, other.row_ids, other.positions)
    assert all(a is b for a, b in zip(before, after, strict=True))
    assert rows.values.equal(other.values / 2)


def test_of_takes_lists_arrays_and_tensors() -> None:
    rows = Ragged.of([[1, 2], np.array([3]), torch.tensor([4, 5, 6])])
    assert rows.values.tolist() == [1, 2, 3, 4, 5, 6]
    assert rows.values.dtype == torch.int64
    assert rows.lengths.tolist() == [2, 1, 3]


def test_an_empty_row_of_ids_leaves_ids_whole_numbers() -> None:
    assert Ragged.of([[], [1, 2]]).values.dtype == torch.int64
    assert Ragged.of([[]]).values.dtype == torch.int64


def test_no_rows_at_all() -> None:
    rows = Ragged.of([])
    assert (rows.num_rows, rows.longest, rows.rows(), rows.pad().shape) == (0, 0, [], (0, 0))


def test_join_of_no_rows_keeps_type_and_width() -> None:
    nothing = Ragged(torch.zeros(0, 8), torch.zeros(0, dtype=torch.int64))
    joined = nothing.join(nothing)
    assert (joined.values.dtype, joined.values.shape) == (torch.float32, (0, 8))


def test_moving_pointers_keeps_what_they_point_into() -> None:
    pointers = Pointers(torch.tensor([2]), torch.tensor([1]), into="source")
    moved = pointers.to("cpu")
    assert isinstance(moved, Pointers)
    assert moved.into == "source"


samples = st.lists(
    st.integers(1, 6).flatmap(
        lambda size: st.tuples(
            st.lists(st.integers(0, 99), min_size=size, max_size=size),
            st.lists(st.integers(0, size - 1), max_size=size, unique=True),
            st.integers(0, 1),
        )
    ),
    min_size=1,
    max_size=6,
)


@given(samples)
def test_collated_pointers_find_what_the_places_pointed_at(drawn: list[tuple[list[int], list[int], int]]) -> None:
    rows: list[Sample] = [
        {"tokens": np.array(tokens), "masked": Places("tokens", np.array(places, np.int64)), "label": np.array(label)}
        for tokens, places, label in drawn
    ]
    batch = collate(rows)
    pointers = batch.ragged("masked")
    assert isinstance(pointers, Pointers)
    assert pointers.into == "tokens"
    assert pointers.sizes == [len(places) for _, places, _ in drawn]
    expected = [tokens[at] for tokens, places, _ in drawn for at in places]
    assert batch.tensor("tokens")[pointers.values].tolist() == expected
    assert batch.tensor("label").tolist() == [label for _, _, label in drawn]
    assert pointers.values.dtype == torch.int64


def test_places_may_be_none_in_a_sample() -> None:
    batch = collate([{"tokens": np.arange(3), "masked": Places("tokens", np.array([]))}] * 2)
    assert batch.tensor("masked").dtype == torch.int64
    assert batch.ragged("masked").sizes == [0, 0]


def test_pointers_count_in_the_field_they_point_into() -> None:
    def sample(source: int, tokens: int) -> Sample:
        return {
            "tokens": np.zeros(tokens, np.int64),
            "source": np.arange(source),
            "at": Places("source", np.array([1])),
        }

    batch = collate([sample(2, 5), sample(3, 1)])
    assert batch.tensor("at").tolist() == [1, 3]


def test_mixed_places_and_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="in every sample or in none"):
        collate([{"a": np.arange(2), "b": Places("a", np.array([0]))}, {"a": np.arange(2), "b": np.array([0])}])


def test_a_field_of_one_value_a_row_is_no_ragged_field() -> None:
    batch = collate([{"label": np.array(1), "tokens": np.arange(2)}])
    with pytest.raises(TypeError, match="'label' has one value a row"):
        batch.ragged("label")
    assert "label" in batch
    assert "other" not in batch


def test_renamed_shows_only_these_fields() -> None:
    batch = collate([{"source": np.arange(2), "target": np.arange(3)}])
    shown = batch.renamed({"source": "tokens"})
    assert set(shown.fields) == {"tokens"}
    assert shown["tokens"] is batch["source"]


def test_with_fields_leaves_the_batch_as_it_was() -> None:
    batch = Batch({"a": torch.tensor([1])})
    more = batch.with_fields({"b": torch.tensor([2])})
    assert set(more.fields) == {"a", "b"}
    assert set(batch.fields) == {"a"}
