"""Feed-forwards against their formulas."""

import pytest
import torch
import torch.nn.functional as F

from bertie.nn.feed_forward import ACTIVATIONS, ActivationName, DenseSpec, GatedSpec

WIDTH, INNER = 6, 5
STATES = torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dense_is_up_activation_down(activation: ActivationName) -> None:
    part = DenseSpec(inner=INNER, activation=activation).build(WIDTH)
    hidden = ACTIVATIONS[activation](F.linear(STATES, part.up.weight, part.up.bias))
    torch.testing.assert_close(part(STATES), F.linear(hidden, part.down.weight, part.down.bias))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gated_multiplies_the_activated_first_half_with_the_second(activation: ActivationName) -> None:
    part = GatedSpec(inner=INNER, activation=activation).build(WIDTH)
    first, second = part.up.weight.split(INNER)
    active = ACTIVATIONS[activation](F.linear(STATES, first, part.up.bias[:INNER]))
    hidden = active * F.linear(STATES, second, part.up.bias[INNER:])
    torch.testing.assert_close(part(STATES), F.linear(hidden, part.down.weight, part.down.bias))


def test_a_closed_gate_lets_nothing_down() -> None:
    part = GatedSpec(inner=INNER, bias=False).build(WIDTH)
    with torch.no_grad():
        part.up.weight[INNER:] = 0
    assert not part(STATES).any()


def test_gated_without_biases_has_none() -> None:
    part = GatedSpec(inner=INNER, bias=False).build(WIDTH)
    assert {name: tuple(one.shape) for name, one in part.named_parameters()} == {
        "up.weight": (2 * INNER, WIDTH),
        "down.weight": (WIDTH, INNER),
    }
