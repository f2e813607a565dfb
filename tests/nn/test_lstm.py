"""The LSTM as a mixer: rows alone and together, what each direction has read, what is remembered."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.errors import SpecError
from bertie.nn.layout import Layout, Side
from bertie.nn.lstm import LSTM, LSTMSpec
from bertie.nn.stack import BlockSpec, StackSpec

WIDTH = 6
SIZES = [4, 1, 3]
TokenRows = Callable[..., Batch]


def build(both_ways: bool = True) -> LSTM:
    torch.manual_seed(0)
    return LSTMSpec(both_ways=both_ways).build(WIDTH).double()


def draw(num_tokens: int) -> Tensor:
    return torch.randn(num_tokens, WIDTH, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def layout(token_rows: TokenRows, sizes: list[int]) -> Layout:
    return Layout.within(Side.of(token_rows(sizes)))


@pytest.mark.parametrize("both_ways", [True, False])
def test_rows_together_are_torchs_lstm_over_each_row_alone(token_rows: TokenRows, both_ways: bool) -> None:
    part, states = build(both_ways), draw(8)
    mixed, _ = part(states, states, layout(token_rows, SIZES))
    assert mixed.shape == (8, WIDTH)
    for row, got in zip(states.split(SIZES), mixed.split(SIZES), strict=True):
        read = [part.ahead(row[None])[0][0]]
        if part.back is not None:
            read.append(part.back(row.flip(0)[None])[0][0].flip(0))
        torch.testing.assert_close(got, torch.cat(read, -1))


def test_rows_of_equal_length_need_no_padding_and_give_the_same(token_rows: TokenRows) -> None:
    part, states = build(), draw(8)
    together, _ = part(states, states, layout(token_rows, [4, 4]))
    alone = [part(row, row, layout(token_rows, [4]))[0] for row in states.split(4)]
    torch.testing.assert_close(together, torch.cat(alone))


@pytest.mark.parametrize("both_ways", [True, False])
def test_each_direction_has_read_its_own_side_only(token_rows: TokenRows, both_ways: bool) -> None:
    part, states = build(both_ways), draw(8).requires_grad_()
    side = Side.of(token_rows(SIZES))
    mixed, _ = part(states, states, Layout.within(side))
    rows, positions = side.rows.row_ids, side.rows.positions
    halves = mixed.chunk(2, -1) if both_ways else (mixed,)
    for token in range(8):
        for half, sees in zip(halves, (positions <= positions[token], positions >= positions[token]), strict=False):
            (gradient,) = torch.autograd.grad(half[token].square().sum(), states, retain_graph=True)
            assert torch.equal(gradient.abs().sum(-1) > 0, sees & (rows == rows[token]))


@pytest.mark.parametrize("both_ways", [True, False])
def test_two_calls_with_memory_read_ahead_as_one(token_rows: TokenRows, both_ways: bool) -> None:
    part = build(both_ways)
    whole = Ragged(draw(8), torch.tensor([5, 3]))
    first, second = whole.values[[0, 1, 2, 5]], whole.values[[3, 4, 6, 7]]
    at_once, _ = part(whole.values, whole.values, layout(token_rows, [5, 3]))
    begun, memory = part(first, first, layout(token_rows, [3, 1]))
    ended, _ = part(second, second, layout(token_rows, [2, 2]), memory)
    forgetful, _ = part(second, second, layout(token_rows, [2, 2]))
    inner = part.ahead.hidden_size
    torch.testing.assert_close(begun[:, :inner], at_once[[0, 1, 2, 5], :inner])
    torch.testing.assert_close(ended[:, :inner], at_once[[3, 4, 6, 7], :inner])
    assert not torch.allclose(ended[:, :inner], forgetful[:, :inner])
    assert torch.equal(ended[:, inner:], forgetful[:, inner:]), "the way back remembers nothing"


def test_a_stack_of_lstms_carries_the_memory_of_every_layer(token_rows: TokenRows) -> None:
    torch.manual_seed(0)
    spec = StackSpec(depth=2, block=BlockSpec(mixer=LSTMSpec(both_ways=False)))
    stack, states = spec.build(WIDTH).double().eval(), draw(5)
    at_once = stack(states, layout(token_rows, [5])).states
    begun = stack(states[:3], layout(token_rows, [3]))
    ended = stack(states[3:], layout(token_rows, [2]), memory=begun.memory)
    torch.testing.assert_close(torch.cat([begun.states, ended.states]), at_once)


def test_a_width_that_two_directions_cannot_share_is_refused() -> None:
    with pytest.raises(SpecError, match="7 cannot be split into two directions"):
        LSTMSpec().build(7)
    assert LSTMSpec(both_ways=False).build(7).back is None
