"""Dropout by place: its share, its gradient, its seed, and where torch must do it."""

import pytest
import torch

from bertie.nn.native.dropout_kernel import drop, kernel

needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C compiler with OpenMP here")


@needs_kernel
@pytest.mark.parametrize("size", [1, 7, 8, 1000, 16_384, 40_001])
def test_what_stays_grows_and_is_added(size: int) -> None:
    states, added = torch.rand(size) + 1, torch.rand(size)
    torch.manual_seed(0)
    alone = drop(states, 0.4)
    torch.manual_seed(0)
    both = drop(states, 0.4, added)
    assert alone is not None
    assert both is not None
    kept = alone != 0
    torch.testing.assert_close(alone[kept], states[kept] / 0.6)
    torch.testing.assert_close(both, alone + added)


@needs_kernel
def test_the_share_is_the_rate_and_calls_differ() -> None:
    ones = torch.ones(1_000_000)
    torch.manual_seed(3)
    first, second = drop(ones, 0.1), drop(ones, 0.1)
    assert first is not None
    assert second is not None
    deviation = (0.1 * 0.9 / len(ones)) ** 0.5
    assert abs((first == 0).float().mean() - 0.1) < 4 * deviation
    assert abs(((first == 0) & (second == 0)).float().mean() - 0.01) < 4 * deviation
    # Neighbours are independent of each other.
    assert abs(((first[1:] == 0) & (first[:-1] == 0)).float().mean() - 0.01) < 4 * deviation


@needs_kernel
def test_the_number_of_threads_changes_nothing() -> None:
    states, before, found = torch.randn(50_000), torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            found.append(drop(states, 0.2))
    finally:
        torch.set_num_threads(before)
    one, two = found
    assert one is not None
    assert two is not None
    assert torch.equal(one, two)


@needs_kernel
def test_gradients_take_the_same_way() -> None:
    states, added = torch.ones(30, 70, requires_grad=True), torch.ones(30, 70, requires_grad=True)
    out = drop(states, 0.5, added)
    assert out is not None
    toward = torch.randn(30, 70)
    of_states, of_added = torch.autograd.grad(out, (states, added), toward)
    assert torch.equal(of_states, toward * (out.detach() - 1))  # 2 where it stayed, else 0
    assert torch.equal(of_added, toward)


def test_torch_does_what_the_kernel_cannot() -> None:
    assert drop(torch.ones(4, dtype=torch.float64), 0.1) is None
    assert drop(torch.ones(4, 4).t()[:2], 0.1) is None
    assert drop(torch.ones(4), 0.1, torch.ones(1)) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert drop(torch.ones(4), 0.1) is None
