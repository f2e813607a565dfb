"""Heads turned by the kernel against torch's way, and where it must step back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Ragged
from bertie.nn.attention.rotary import Rotary, rotate, turn_table
from bertie.nn.layout import Layout, Side
from bertie.nn.native import rotary_kernel as native

needs_kernel = pytest.mark.skipif(native.kernel() is None, reason="no C compiler with OpenMP here")
BASE = 10_000.0


def side(lengths: list[int]) -> Side:
    return Side(Ragged.of([torch.arange(length) for length in lengths]))


def table(length: int, width: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    return turn_table(BASE, width, length)


@needs_kernel
@given(lengths=st.lists(st.integers(1, 150), min_size=1, max_size=5), num_heads=st.integers(1, 3))
def test_equals_torch_with_gradients(lengths: list[int], num_heads: int) -> None:
    generator = torch.Generator().manual_seed(0)
    together = torch.randn(sum(lengths), 3, num_heads, 64, generator=generator, requires_grad=True)
    toward = torch.randn(2, sum(lengths), num_heads, 64, generator=generator)
    query, key, _ = together.unbind(1)  # slices of a wider matrix, as attention hands them over
    layout = Layout.within(side(lengths))
    found = torch.stack(Rotary(BASE).prepare(query, key, layout))
    turn = Rotary(BASE).turn(layout.query.rows.values, query)
    expected = torch.stack([rotate(query, *turn), rotate(key, *turn)])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    own, other = (torch.autograd.grad(each, together, toward)[0] for each in (found, expected))
    torch.testing.assert_close(own, other, atol=1e-6, rtol=1e-6)


@needs_kernel
def test_a_table_made_while_nothing_learned_serves_for_learning() -> None:
    turn_table.cache_clear()
    states, places = torch.randn(3, 1, 64), torch.arange(3)
    with torch.inference_mode():
        first = native.rotate(states, places, table)
    again = native.rotate(states.clone().requires_grad_(), places, table)
    assert first is not None
    assert again is not None
    again.sum().backward()
    assert torch.equal(first, again.detach())


@pytest.mark.parametrize(
    ("width", "places", "dtype"),
    [
        (64, [0, 1], torch.float32),
        (64, [-1, 0, 1], torch.float32),
        (12, [0, 1, 2], torch.float32),
        (64, [0, 1, 2], torch.float64),
    ],
)
def test_steps_back_where_it_is_not_made_for(width: int, places: list[int], dtype: torch.dtype) -> None:
    """Places that are fewer than the states, or remembered; odd widths; other types."""
    states = torch.zeros(3, 1, width, dtype=dtype)
    assert native.rotate(states, torch.tensor(places), lambda length: table(length, width)) is None


def test_remembered_places_are_turned_all_the_same() -> None:
    """Their positions are negative: torch turns them."""
    own = side([3])
    behind = Layout.within(own).behind(Ragged(torch.zeros(2), torch.tensor([2])))
    query, key = torch.randn(3, 1, 64), torch.randn(5, 1, 64)
    _, turned = Rotary(BASE).prepare(query, key, behind)
    cosines, sines = table(4)
    left, right = key[0, 0].chunk(2)
    expected = torch.cat([left * cosines[2] + right * sines[2], right * cosines[2] - left * sines[2]])
    torch.testing.assert_close(turned[0, 0], expected)
