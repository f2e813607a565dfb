"""Blocks and stacks: wiring, layers, visibilities, memory, a second sequence, layers that share or differ."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from bertie.batch import Batch
from bertie.errors import SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.feed_forward import DenseSpec, GatedSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.residual import PostNormSpec, PreNormSpec
from bertie.nn.stack import Block, BlockSpec, Context, Shared, Stack, StackSpec
from bertie.nn.visibility import Causal, Full, Window

WIDTH = 8
POST, PRE = PostNormSpec(dropout=0), PreNormSpec(dropout=0)


def block(residual: PostNormSpec | PreNormSpec = POST, cross: bool = False, **mixer: Any) -> BlockSpec:
    attention = AttentionSpec(num_heads=2, **mixer)
    return BlockSpec(
        mixer=attention,
        cross=AttentionSpec(num_heads=2) if cross else None,
        feed_forward=DenseSpec(inner=12),
        residual=residual,
    )


def build(spec: StackSpec) -> Stack:
    torch.manual_seed(0)
    return spec.build(WIDTH).eval()


@pytest.fixture
def side(token_rows: Callable[..., Batch]) -> Side:
    return Side.of(token_rows([4, 1, 3]))


STATES = torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(5))


def test_a_post_norm_block_is_its_formula(side: Side) -> None:
    torch.manual_seed(0)
    part = block(POST).build(WIDTH)
    assert part.feed_forward is not None
    layout = Layout.within(side)
    got, _ = part(STATES, STATES, layout)
    after = part.mixer.residual.norm(STATES + part.mixer.part(STATES, STATES, layout)[0])
    torch.testing.assert_close(got, part.feed_forward.residual.norm(after + part.feed_forward.part(after)))


def test_a_pre_norm_block_is_its_formula(side: Side) -> None:
    torch.manual_seed(0)
    part = block(PRE).build(WIDTH)
    assert part.feed_forward is not None
    layout = Layout.within(side)
    entered = part.mixer.residual.norm(STATES)
    after = STATES + part.mixer.part(entered, entered, layout)[0]
    expected = after + part.feed_forward.part(part.feed_forward.residual.norm(after))
    torch.testing.assert_close(part(STATES, STATES, layout)[0], expected)


@pytest.mark.parametrize("residual", [POST, PRE])
def test_query_and_key_streams_are_told_apart(side: Side, residual: PostNormSpec | PreNormSpec) -> None:
    torch.manual_seed(0)
    part = block(residual).build(WIDTH)
    layout, other = Layout.within(side), torch.randn(8, WIDTH)
    plain, copied = part(STATES, STATES, layout)[0], part(STATES, STATES.clone(), layout)[0]
    torch.testing.assert_close(plain, copied, atol=1e-6, rtol=1e-5)
    mixed = part(STATES, other, layout)[0]
    assert not torch.allclose(mixed, plain)
    # A row of one token sees only the other stream's token there.
    changed = other.clone()
    changed[4, 0] += 3
    difference = (part(STATES, changed, layout)[0] - mixed).abs().sum(-1)
    assert (difference > 1e-4).tolist() == [False] * 4 + [True] + [False] * 3


def test_no_feed_forward_no_parameters_for_it() -> None:
    part = BlockSpec(mixer=AttentionSpec(num_heads=2)).build(WIDTH)
    assert isinstance(part, Block)
    assert part.feed_forward is None
    assert not [name for name, _ in part.named_parameters() if not name.startswith("mixer.")]


def test_visibilities_alternate(side: Side) -> None:
    near, far = Window(reach=0), Full()
    both = build(StackSpec(depth=3, block=block(), visibility=(near, far)))
    assert both.visibilities == (near, far, near)
    layout, states = Layout.within(side), STATES
    for part, visibility in zip(both.blocks, (near, far, near), strict=True):
        states, _ = part(states, states, layout.seen_by(visibility))
    torch.testing.assert_close(both(STATES, layout).states, states)


def test_a_stack_s_visibility_restricts_the_caller_s_further(side: Side) -> None:
    """Seen by no later token (the caller), within one step (the stack): a change moves its own and the next state."""
    stack = build(StackSpec(depth=1, block=block(), visibility=(Window(reach=1),)))
    changed = STATES.clone()
    changed[1] += 1
    layout = Layout(side, side, Causal())
    difference = (stack(changed, layout).states - stack(STATES, layout).states).abs().sum(-1)
    assert (difference > 1e-4).tolist() == [False, True, True, False, False, False, False, False]


@pytest.mark.parametrize("visibility", [(), []])
def test_an_empty_cycle_of_visibilities_is_refused(visibility: object) -> None:
    with pytest.raises(SpecError, match="visibility"):
        StackSpec.parse({"depth": 2, "block": block(), "visibility": visibility})


def test_layers_are_what_entered_and_each_output(side: Side) -> None:
    stack, layout = build(StackSpec(depth=3, block=block())), Layout.within(side)
    kept = stack(STATES, layout, keep_layers=True)
    assert len(kept.layers) == 4
    assert kept.layers[0] is STATES
    assert kept.layers[-1].equal(kept.states)
    torch.testing.assert_close(stack.blocks[1](kept.layers[1], kept.layers[1], layout)[0], kept.layers[2])
    assert stack(STATES, layout).layers == ()


def test_a_pre_norm_stack_ends_with_a_norm(side: Side) -> None:
    stack, layout = build(StackSpec(depth=2, block=block(PRE))), Layout.within(side)
    kept = stack(STATES, layout, keep_layers=True)
    torch.testing.assert_close(kept.states.mean(-1), torch.zeros(8), atol=1e-6, rtol=0)
    torch.testing.assert_close(kept.states.var(-1, unbiased=False), torch.ones(8), atol=1e-4, rtol=0)
    assert kept.layers[-1].equal(kept.states)
    assert not torch.allclose(kept.layers[1].mean(-1), torch.zeros(8), atol=1e-3)


@pytest.mark.parametrize("residual", [POST, PRE])
def test_depth_zero_gives_back_what_entered(side: Side, residual: PostNormSpec | PreNormSpec) -> None:
    stack = build(StackSpec(depth=0, block=block(residual)))
    kept = stack(STATES, Layout.within(side), keep_layers=True)
    assert kept.states is STATES
    assert kept.layers == (STATES,)
    assert not list(stack.parameters())


@pytest.mark.parametrize("residual", [POST, PRE])
def test_memory_of_every_layer_makes_two_calls_one(
    token_rows: Callable[..., Batch], residual: PostNormSpec | PreNormSpec
) -> None:
    stack = build(StackSpec(depth=3, block=block(residual, memory_length=9), visibility=(Causal(),)))
    whole, first, second = (Layout.within(Side.of(token_rows(sizes))) for sizes in ([5, 3], [3, 1], [2, 2]))
    states = torch.randn(8, WIDTH)
    expected = stack(states, whole).states
    begun = stack(states[[0, 1, 2, 5]], first)
    ended = stack(states[[3, 4, 6, 7]], second, memory=begun.memory)
    torch.testing.assert_close(begun.states, expected[[0, 1, 2, 5]], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ended.states, expected[[3, 4, 6, 7]], atol=1e-5, rtol=1e-5)


def context(side: Side, seed: int = 7) -> Context:
    return Context(torch.randn(len(side.rows.values), WIDTH, generator=torch.Generator().manual_seed(seed)), side)


def test_cross_attention_sees_all_of_its_own_row_and_no_other(token_rows: Callable[..., Batch], side: Side) -> None:
    stack = build(StackSpec(depth=2, block=block(cross=True), visibility=(Causal(),)))
    source = Side.of(token_rows([2, 3, 1]))
    given = context(source)
    changed_states = given.states.clone()
    changed_states[4] += 1  # the last of the second row
    layout = Layout.within(side)
    plain = stack(STATES, layout, context=given).states
    changed = stack(STATES, layout, context=Context(changed_states, source)).states
    assert ((plain - changed).abs().sum(-1) > 1e-5).tolist() == [False] * 4 + [True] + [False] * 3


def test_a_block_says_when_its_second_sequence_is_missing_or_in_vain(side: Side) -> None:
    with_cross = build(StackSpec(depth=1, block=block(cross=True)))
    with pytest.raises((ValueError, TypeError)):
        with_cross(STATES, Layout.within(side))
    without = build(StackSpec(depth=1, block=block()))
    with pytest.raises((ValueError, TypeError)):
        without(STATES, Layout.within(side), context=context(side))


def test_observed_attention_is_one_a_layer_also_beside_cross_attention(
    token_rows: Callable[..., Batch], side: Side
) -> None:
    observed: list[Tensor] = []
    stack = build(StackSpec(depth=2, block=block(cross=True)))
    source = context(Side.of(token_rows([2, 2, 2])))
    stack(STATES, Layout(side, side, Full(), observed), context=source)
    assert [tuple(weights.shape) for weights in observed] == [(3, 2, 4, 4)] * 2


def test_dropout_of_attention_and_residuals_acts_in_training_only(side: Side) -> None:
    spec = block(PostNormSpec(dropout=0.3), scorer=DotProductSpec(dropout=0.3))
    stack, layout = build(StackSpec(depth=1, block=spec)), Layout.within(side)
    assert stack(STATES, layout).states.equal(stack(STATES, layout).states)
    stack.train()
    assert not stack(STATES, layout).states.equal(stack(STATES, layout).states)


def count(part: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


@pytest.mark.parametrize("residual", [POST, PRE])
@pytest.mark.parametrize(
    ("shared", "groups", "num_mixers", "num_feed_forwards"),
    [
        ((), 1, 6, 6),
        (("mixer",), 1, 1, 6),
        (("feed-forward",), 1, 6, 1),
        (("mixer", "feed-forward"), 1, 1, 1),
        (("mixer", "feed-forward"), 3, 3, 3),
        (("mixer",), 2, 2, 6),
    ],
)
def test_shared_parts_are_counted_once_a_group(
    residual: PostNormSpec | PreNormSpec,
    shared: tuple[Shared, ...],
    groups: int,
    num_mixers: int,
    num_feed_forwards: int,
) -> None:
    spec = StackSpec(depth=6, block=block(residual), shared=shared, groups=groups)
    stack, one = spec.build(WIDTH), block(residual).build(WIDTH)
    assert one.feed_forward is not None
    expected = num_mixers * count(one.mixer) + num_feed_forwards * count(one.feed_forward) + count(stack.final_norm)
    assert count(stack) == expected


def test_groups_are_neighbouring_layers() -> None:
    spec = StackSpec(depth=6, block=block(), shared=("mixer",), groups=2)
    mixers = [part.mixer for part in build(spec).blocks]
    assert [mixers.index(mixer) for mixer in mixers] == [spec.owner(layer) for layer in range(6)] == [0, 0, 0, 3, 3, 3]


@pytest.mark.parametrize(("shared", "groups"), [(("mixer", "feed-forward"), 1), (("mixer", "feed-forward"), 2)])
def test_a_shared_layer_runs_again_and_its_gradients_add_up(
    side: Side, shared: tuple[Shared, ...], groups: int
) -> None:
    """Beside a stack whose layers are equal, but each its own."""
    spec = StackSpec(depth=4, block=block(), shared=shared, groups=groups)
    one, apart, layout = build(spec).double(), build(StackSpec(depth=4, block=block())).double(), Layout.within(side)
    apart.load_state_dict(one.state_dict())
    states, toward = STATES.double(), torch.randn(8, WIDTH, dtype=torch.float64)
    got, expected = one(states, layout).states, apart(states, layout).states
    torch.testing.assert_close(got, expected)
    (got * toward).sum().backward()
    (expected * toward).sum().backward()
    for name, parameter in one.named_parameters():
        _, layer, rest = name.split(".", 2)
        group = [other for other in range(4) if spec.owner(other) == int(layer)]
        added = sum(apart.get_parameter(f"blocks.{other}.{rest}").grad for other in group)  # type: ignore[misc]
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, added)
    assert sum(1 for _ in one.parameters()) * 4 == sum(1 for _ in apart.parameters()) * groups


@pytest.mark.parametrize(
    ("shared", "groups", "told"),
    [((), 2, "4 layers that share nothing cannot be divided into 2"), (("mixer",), 3, "cannot be divided into 3")],
)
def test_groups_that_do_not_come_out_even_are_refused(shared: tuple[Shared, ...], groups: int, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        StackSpec.parse({"depth": 4, "block": block(), "shared": shared, "groups": groups})


def test_layers_that_differ_come_in_turn(side: Side) -> None:
    gated = block().replace(feed_forward=GatedSpec(inner=5))
    bare = block().replace(feed_forward=None)
    spec = StackSpec(depth=5, block=block(), next_blocks=(gated, bare), visibility=(Full(), Window(reach=0)))
    assert [spec.layer_spec(layer) for layer in range(5)] == [block(), gated, bare, block(), gated]
    stack = build(spec)
    assert [count(part) for part in stack.blocks] == [count(spec.layer_spec(layer).build(WIDTH)) for layer in range(5)]
    assert stack.visibilities == (Full(), Window(reach=0), Full(), Window(reach=0), Full())
    assert stack(STATES, Layout.within(side)).states.isfinite().all()


def test_a_first_layer_whose_input_is_normed_already_does_not_norm_it_again(side: Side) -> None:
    plain, input_normed = (
        build(StackSpec(depth=2, block=block(PRE), input_normed=input_normed)) for input_normed in (False, True)
    )
    left_out = plain.state_dict().keys() - input_normed.state_dict().keys()
    assert left_out == {"blocks.0.mixer.residual.norm.weight", "blocks.0.mixer.residual.norm.bias"}
    layout = Layout.within(side)
    entered = torch.nn.functional.layer_norm(STATES, (WIDTH,), eps=1e-12)
    first = input_normed.blocks[0]
    assert isinstance(first, Block) and first.feed_forward is not None
    after = entered + first.mixer.part(entered, entered, layout)[0]
    expected = after + first.feed_forward.part(first.feed_forward.residual.norm(after))
    torch.testing.assert_close(input_normed(entered, layout, keep_layers=True).layers[1], expected)


@pytest.mark.parametrize("residual", [POST, PRE])
def test_wanted_states_are_the_same_and_others_are_zero(residual: PostNormSpec | PreNormSpec, side: Side) -> None:
    stack = build(StackSpec(depth=2, block=block(residual)))
    wanted, others = torch.tensor([0, 3, 4, 6]), torch.tensor([1, 2, 5, 7])
    states = STATES.clone().requires_grad_()
    parameters = [states, *stack.parameters()]
    whole = stack(states, Layout.within(side)).states[wanted]
    part = stack(states, Layout.within(side), positions=wanted).states
    torch.testing.assert_close(part[wanted], whole)
    assert not part[others].any()
    weights = torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(1))
    expected = torch.autograd.grad((whole * weights).sum(), parameters, allow_unused=True)
    found = torch.autograd.grad((part[wanted] * weights).sum(), parameters, allow_unused=True)
    torch.testing.assert_close(found, expected)


def test_kept_layers_are_whole_whatever_is_wanted(side: Side) -> None:
    stack = build(StackSpec(depth=2, block=block()))
    whole = stack(STATES, Layout.within(side), keep_layers=True)
    part = stack(STATES, Layout.within(side), keep_layers=True, positions=torch.tensor([2]))
    assert all(one.equal(other) for one, other in zip(part.layers, whole.layers, strict=True))
    assert part.states.equal(whole.states)
    assert build(StackSpec(depth=0, block=block()))(
        STATES, Layout.within(side), positions=torch.tensor([2])
    ).states.all()
