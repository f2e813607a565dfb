"""Attention: separate query and key states, and memory between calls."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.nn.attention.attention import Attention, AttentionSpec
from bertie.nn.attention.relative import RelativeSpec
from bertie.nn.attention.rotary import RotarySpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.memory import LayerMemory
from bertie.nn.visibility import Causal, Full, Same, Visibility, Window

WIDTH = 8


def attention(
    memory_length: int = 0,
    fused: bool = True,
    scorer: type[DotProductSpec | RotarySpec | RelativeSpec] = DotProductSpec,
) -> Attention:
    torch.manual_seed(0)
    return AttentionSpec(num_heads=2, scorer=scorer(fused=fused), memory_length=memory_length).build(WIDTH)


def side_of(sizes: list[int]) -> Side:
    rows = Ragged(torch.zeros(sum(sizes), dtype=torch.int64), torch.tensor(sizes))
    return Side(rows.with_values(rows.positions))


def naive(part: Attention, query_states: Tensor, key_states: Tensor) -> Tensor:
    """One row, all heads, by torch's own multi-head attention."""
    weight, bias, output = part.project.weight, part.project.bias, part.output
    other = torch.nn.MultiheadAttention(WIDTH, part.num_heads)
    other.in_proj_weight.data, other.in_proj_bias.data = weight.data, bias.data
    other.out_proj.weight.data, other.out_proj.bias.data = output.weight.data, output.bias.data
    return other(query_states, key_states, key_states, need_weights=False)[0]


@pytest.mark.parametrize("fused", [False, True])
def test_equals_torch_on_each_row(fused: bool) -> None:
    part, sizes = attention(fused=fused), [3, 1, 5]
    states = torch.randn(9, WIDTH)
    mixed, memory = part(states, states, Layout.within(side_of(sizes)))
    assert memory is None
    expected = torch.cat([naive(part, row, row) for row in states.split(sizes)])
    torch.testing.assert_close(mixed, expected, atol=1e-6, rtol=1e-5)


def test_separate_states_equal_the_slices() -> None:
    part = attention()
    queries, keys = torch.randn(4, WIDTH), torch.randn(7, WIDTH)
    mixed, _ = part(queries, keys, Layout(side_of([1, 3]), side_of([5, 2])))
    expected = torch.cat([naive(part, queries[:1], keys[:5]), naive(part, queries[1:], keys[5:])])
    torch.testing.assert_close(mixed, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("visibility", [Full(), Causal(), Window(reach=1)])
def test_equal_states_in_two_tensors_are_as_one(visibility: Visibility) -> None:
    part, side = attention(), side_of([4, 2])
    states = torch.randn(6, WIDTH)
    layout = Layout(side, side, visibility)
    same, other = part(states, states, layout)[0], part(states, states.clone(), layout)[0]
    torch.testing.assert_close(same, other, atol=1e-6, rtol=1e-5)


row_parts = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4)


@pytest.mark.parametrize("scorer", [DotProductSpec, RotarySpec, RelativeSpec])
@given(row_parts, st.sampled_from([Causal(), Causal() & Window(reach=3), Causal() & Window(reach=1, dilation=2)]))
def test_two_calls_with_memory_equal_one_call(
    scorer: type[DotProductSpec | RotarySpec | RelativeSpec], parts: list[tuple[int, int]], visibility: Visibility
) -> None:
    part = attention(memory_length=6, scorer=scorer)
    first = Ragged(torch.randn(sum(a for a, _ in parts), WIDTH), torch.tensor([a for a, _ in parts]))
    second = Ragged(torch.randn(sum(b for _, b in parts), WIDTH), torch.tensor([b for _, b in parts]))

    def mix(rows: Ragged, memory: LayerMemory | None = None) -> tuple[Ragged, LayerMemory | None]:
        side = side_of(rows.sizes)
        mixed, kept = part(rows.values, rows.values, Layout(side, side, visibility), memory)
        return rows.with_values(mixed), kept

    whole, _ = mix(first.join(second))
    begun, memory = mix(first)
    ended, _ = mix(second, memory)
    torch.testing.assert_close(begun.join(ended).values, whole.values, atol=1e-5, rtol=1e-5)


def test_full_visibility_sees_all_that_is_remembered() -> None:
    part = attention(memory_length=9)
    old, new = torch.randn(3, WIDTH), torch.randn(2, WIDTH)
    _, memory = part(old, old, Layout.within(side_of([3])))
    mixed, _ = part(new, new, Layout.within(side_of([2])), memory)
    torch.testing.assert_close(mixed, naive(part, new, torch.cat([old, new])), atol=1e-6, rtol=1e-5)


def test_memory_keeps_the_last_states_of_each_row_and_no_gradient() -> None:
    part, sizes = attention(memory_length=3), [5, 2]
    states = torch.randn(7, WIDTH, requires_grad=True)
    _, memory = part(states, states, Layout.within(side_of(sizes)))
    assert memory is not None
    kept = memory["states"]
    assert isinstance(kept, Ragged)
    assert kept.sizes == [3, 2]
    assert kept.values.equal(states.detach()[[2, 3, 4, 5, 6]])
    assert not kept.values.requires_grad

    new = torch.randn(3, WIDTH)
    _, longer = part(new, new, Layout.within(side_of([1, 2])), memory)
    assert longer is not None
    kept = longer["states"]
    assert isinstance(kept, Ragged)
    assert kept.sizes == [3, 3]
    assert kept.values.equal(torch.cat([states.detach()[[3, 4]], new[:1], states.detach()[[6]], new[1:]]))


def test_nothing_is_kept_unless_asked() -> None:
    part = attention(memory_length=0)
    states = torch.randn(3, WIDTH)
    assert part(states, states, Layout.within(side_of([3])))[1] is None


def test_fields_of_any_shape_may_stand_beside_the_tokens(token_rows: Callable[..., Batch]) -> None:
    part = attention(memory_length=4)
    batch = token_rows([3, 2], documents=[0, 0, 1, 0, 1])
    batch = batch.with_fields({"vectors": batch.ragged("tokens").with_values(torch.randn(5, 6))})
    side, states = Side.of(batch), torch.randn(5, WIDTH)
    layout = Layout(side, side, Same())
    _, memory = part(states, states, layout)
    mixed, _ = part(states, states, layout, memory)
    assert mixed.isfinite().all()


def test_gradients_reach_every_parameter_in_both_wirings() -> None:
    side = side_of([3, 2])
    for keys in (None, torch.randn(5, WIDTH)):
        part, states = attention(), torch.randn(5, WIDTH)
        part(states, states if keys is None else keys, Layout.within(side))[0].square().sum().backward()
        assert all(parameter.grad is not None for parameter in part.parameters())


@pytest.mark.parametrize("fused", [False, True])
def test_no_bias_is_a_bias_of_zeros(fused: bool) -> None:
    spec = AttentionSpec(num_heads=2, scorer=DotProductSpec(fused=fused))
    bare, zeros = spec.replace(bias=False).build(WIDTH), spec.build(WIDTH)
    assert dict(bare.named_parameters()).keys() == {"project.weight", "output.weight"}
    zeros.load_state_dict(bare.state_dict(), strict=False)
    for bias in (zeros.project.bias, zeros.output.bias):
        torch.nn.init.zeros_(bias)
    states, layout = torch.randn(6, WIDTH), Layout.within(side_of([4, 2]))
    for keys in (states, states.clone()):
        torch.testing.assert_close(bare(states, keys, layout)[0], zeros(states, keys, layout)[0], atol=1e-6, rtol=1e-5)
