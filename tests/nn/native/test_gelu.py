"""A linear layer with GELU in one pass against torch's two."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bertie.nn.native.gelu import gated_gelu, kernel, linear_gelu

needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C compiler with OpenMP here")


@needs_kernel
@pytest.mark.parametrize(("num_rows", "inner"), [(1, 16), (7, 37), (64, 1536), (0, 8)])
def test_equals_torch(num_rows: int, inner: int) -> None:
    torch.manual_seed(0)
    linear, states = nn.Linear(24, inner), torch.randn(num_rows, 24) * 6
    with torch.inference_mode():
        found = linear_gelu(linear, states)
        assert found is not None
        # The product alone is 3.5e-6 off the exact one, and where it rounds depends on the processor.
        torch.testing.assert_close(found, F.gelu(linear(states)), atol=3e-6, rtol=1e-6)


@needs_kernel
def test_far_from_zero_it_is_the_line_or_nothing() -> None:
    linear = nn.Linear(1, 1)
    nn.init.ones_(linear.weight)
    nn.init.zeros_(linear.bias)
    with torch.inference_mode():
        found = linear_gelu(linear, torch.tensor([[-50.0], [-9.0], [0.0], [9.0], [50.0]]))
    assert found is not None
    torch.testing.assert_close(found[:, 0], torch.tensor([0.0, 0.0, 0.0, 9.0, 50.0]), atol=1e-6, rtol=0)


@needs_kernel
@pytest.mark.parametrize("shape", [(5, 24), (2, 3, 24)])
def test_gradients_equal_torchs(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    linear, states = nn.Linear(24, 37), (torch.randn(shape) * 4).requires_grad_()
    given = (states, linear.weight, linear.bias)
    toward = torch.randn(*shape[:-1], 37)
    found = linear_gelu(linear, states)
    assert found is not None
    before = toward.clone()
    own = torch.autograd.grad(found, given, toward)
    expected = torch.autograd.grad(F.gelu(linear(states)), given, toward)
    for ours, theirs in zip(own, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert torch.equal(toward, before)  # others may need it


class Doubled(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(input)


def test_never_past_what_the_layer_itself_does() -> None:
    """A subclass, a hook and autocast change the result or its type: torch must do those."""
    states, hooked = torch.randn(5, 4), nn.Linear(4, 8)
    hooked.register_forward_hook(lambda part, given, result: result * 0)
    with torch.inference_mode():
        assert linear_gelu(Doubled(4, 8), states) is None
        assert linear_gelu(hooked, states) is None
        with torch.autocast("cpu", torch.bfloat16):
            assert linear_gelu(nn.Linear(4, 8), states) is None


@needs_kernel
def test_by_tanh_it_equals_torchs_by_tanh() -> None:
    torch.manual_seed(0)
    linear, states = nn.Linear(24, 37), (torch.randn(40, 24) * 6).requires_grad_()
    given = (states, linear.weight, linear.bias)
    toward = torch.randn(40, 37)
    found = linear_gelu(linear, states, exact=False)
    expected = F.gelu(linear(states), approximate="tanh")
    assert found is not None
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=2e-6)
    assert not torch.allclose(found, F.gelu(linear(states)), atol=1e-5)
    for ours, theirs in zip(
        torch.autograd.grad(found, given, toward), torch.autograd.grad(expected, given, toward), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-5)


@needs_kernel
@pytest.mark.parametrize("shape", [(5, 74), (2, 3, 64), (0, 8)])
def test_a_gate_equals_torchs(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    both = (torch.randn(shape) * 4).requires_grad_()
    found = gated_gelu(both)
    assert found is not None
    active, gate = both.chunk(2, -1)
    expected = F.gelu(active) * gate
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-6)
    toward = torch.randn(expected.shape)
    own, other = (torch.autograd.grad(each, both, toward)[0] for each in (found, expected))
    torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-5)


def test_a_gate_of_another_type_is_torchs() -> None:
    assert gated_gelu(torch.zeros(3, 8, dtype=torch.float64)) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert gated_gelu(torch.zeros(3, 8)) is None
