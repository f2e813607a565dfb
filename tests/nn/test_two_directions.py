"""Two stacks over one sequence: each sees its own side, and they never meet."""

from collections.abc import Callable

import pytest
import torch

from bertie.batch import Batch, Ragged
from bertie.errors import SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.two_directions import TwoDirections, TwoDirectionsSpec
from bertie.nn.visibility import AntiCausal, Causal

WIDTH = 8
SIZES = [4, 1, 3]
BLOCK = BlockSpec(mixer=AttentionSpec(num_heads=2), feed_forward=DenseSpec(inner=6), residual=PostNormSpec(dropout=0))
STATES = torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
TokenRows = Callable[..., Batch]


def build(depth: int = 2) -> TwoDirections:
    torch.manual_seed(0)
    return TwoDirectionsSpec(stack=StackSpec(depth=depth, block=BLOCK)).build(WIDTH).double().eval()


@pytest.fixture
def side(token_rows: TokenRows) -> Side:
    return Side.of(token_rows(SIZES))


def test_each_half_sees_its_own_side_and_its_own_half_of_the_width(side: Side) -> None:
    states = STATES.clone().requires_grad_()
    halves = build()(states, Layout.within(side)).states.chunk(2, -1)
    rows, positions = side.rows.row_ids, side.rows.positions
    for token in range(8):
        sides = (positions <= positions[token], positions >= positions[token])
        for number, (half, sees) in enumerate(zip(halves, sides, strict=True)):
            # A weighted sum: after a norm the squares of a state sum up to the same whatever entered.
            (gradient,) = torch.autograd.grad(half[token] @ torch.arange(4.0).double(), states, retain_graph=True)
            own, other = gradient.chunk(2, -1)[number], gradient.chunk(2, -1)[1 - number]
            assert torch.equal(own.abs().sum(-1) > 0, sees & (rows == rows[token]))
            assert not other.any()


def test_rows_together_are_rows_alone(side: Side, token_rows: TokenRows) -> None:
    stacks = build()
    together = stacks(STATES, Layout.within(side)).states
    alone = [stacks(row, Layout.within(Side.of(token_rows([len(row)])))).states for row in STATES.split(SIZES)]
    torch.testing.assert_close(together, torch.cat(alone))


def test_backward_over_a_row_is_forward_over_the_turned_row(token_rows: TokenRows) -> None:
    stacks = build()
    stacks.back.load_state_dict(stacks.ahead.state_dict())
    rows = Ragged(STATES[:5], torch.tensor([5]))
    layout = Layout.within(Side.of(token_rows([5])))
    turned = torch.cat([rows.values[:, 4:], rows.values[:, :4]], -1).flip(0)
    ahead, back = stacks(rows.values, layout).states.chunk(2, -1)
    turned_ahead, turned_back = stacks(turned, layout).states.chunk(2, -1)
    torch.testing.assert_close(back.flip(0), turned_ahead)
    torch.testing.assert_close(ahead.flip(0), turned_back)


def test_layers_are_those_of_both_halves(side: Side) -> None:
    stacks, layout = build(), Layout.within(side)
    kept = stacks(STATES, layout, keep_layers=True)
    assert len(kept.layers) == 3
    assert torch.equal(kept.layers[0], STATES)
    assert torch.equal(kept.layers[-1], kept.states)
    assert stacks(STATES, layout).layers == ()


def test_nothing_is_remembered(side: Side) -> None:
    assert build()(STATES, Layout.within(side)).memory is None


def test_no_depth_gives_back_what_entered(side: Side) -> None:
    stacks = build(depth=0)
    assert torch.equal(stacks(STATES, Layout.within(side)).states, STATES)
    assert not list(stacks.parameters())


def test_directions_have_weights_of_their_own() -> None:
    stacks = build()
    names = [name.removeprefix("ahead.") for name, _ in stacks.named_parameters() if name.startswith("ahead.")]
    assert names
    shapes = {name: parameter.shape for name, parameter in stacks.back.named_parameters()}
    assert [stacks.ahead.get_parameter(name).shape for name in names] == [shapes[name] for name in names]
    assert sum(1 for _ in stacks.parameters()) == 2 * len(names)


def test_a_width_that_two_directions_cannot_share_is_refused() -> None:
    with pytest.raises(SpecError, match="9 cannot be split into two directions"):
        TwoDirectionsSpec(stack=StackSpec(depth=1, block=BLOCK)).build(9)


def test_layers_are_of_both_directions_with_what_each_sees() -> None:
    stack = build()
    layers = stack.layers()
    assert [[layer.block for layer in one] for one in layers] == [
        [stack.ahead.blocks[number], stack.back.blocks[number]] for number in range(len(layers))
    ]
    assert {tuple(layer.visibility for layer in one) for one in layers} == {(Causal(), AntiCausal())}
