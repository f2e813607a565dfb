"""Rotary scores: a rotation of complex numbers, scores by distance, fused as reference, memory before the row."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.rotary import Rotary, RotarySpec
from bertie.nn.layout import Layout, Side

HEADS, WIDTH = 2, 8


def side_of(sizes: list[int], shift: int = 0) -> Side:
    rows = Ragged(torch.zeros(sum(sizes), dtype=torch.int64), torch.tensor(sizes))
    return Side(rows.with_values(rows.positions + shift))


def states(total: int, seed: int) -> Tensor:
    return torch.randn(total, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("base", [10_000.0, 160_000.0, 7.0])
def test_equals_a_rotation_of_complex_numbers(base: float) -> None:
    side = side_of([5, 1, 300])
    query, key = states(306, 1), states(306, 2)
    turned = Rotary(base).prepare(query, key, Layout.within(side))
    rates = base ** (-torch.arange(WIDTH // 2, dtype=torch.float64) / (WIDTH // 2))
    turn = torch.polar(torch.ones(()).double(), side.rows.values[:, None, None] * rates)
    for given_states, found in zip((query, key), turned, strict=True):
        left, right = given_states.double().chunk(2, -1)
        expected = torch.complex(left, right) * turn
        torch.testing.assert_close(found.double(), torch.cat([expected.real, expected.imag], -1), atol=1e-4, rtol=0)


@given(st.integers(-40, 40), st.integers(0, 20), st.integers(0, 20))
def test_a_score_depends_on_the_distance_alone(shift: int, query_size: int, key_size: int) -> None:
    query, key = states(query_size, 1), states(key_size, 2)

    def scores(by: int) -> Tensor:
        layout = Layout(side_of([query_size], by), side_of([key_size], by))
        turned_query, turned_key = Rotary(10_000.0).prepare(query, key, layout)
        return torch.einsum("qnd,knd->nqk", turned_query, turned_key)

    torch.testing.assert_close(scores(0), scores(shift), atol=1e-4, rtol=1e-4)


def test_the_distance_matters() -> None:
    layouts = [Layout(side_of([1]), side_of([1], shift)) for shift in (0, 3)]
    query, key = states(1, 1), states(1, 2)
    near, far = (torch.mul(*Rotary(10_000.0).prepare(query, key, layout)).sum() for layout in layouts)
    assert abs(float(near - far)) > 0.1


def test_fused_equals_reference() -> None:
    side = side_of([4, 1, 33, 6])
    query, key, value = (states(44, seed).requires_grad_() for seed in (1, 2, 3))
    mixed = [
        RotarySpec(fused=fused).build(HEADS, WIDTH)(query, key, value, Layout.within(side)) for fused in (True, False)
    ]
    torch.testing.assert_close(*mixed, atol=2e-6, rtol=1e-5)
    weights = torch.randn(44, HEADS, WIDTH)
    gradients = [torch.autograd.grad((one * weights).sum(), (query, key, value)) for one in mixed]
    for own, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(own, expected, atol=5e-6, rtol=1e-5)


def test_heads_of_odd_width_are_refused() -> None:
    with pytest.raises(SpecError, match="even width, not 3"):
        AttentionSpec(num_heads=2, scorer=RotarySpec()).build(6)
