"""GELU in one pass over a linear layer's output, with its gradient: behind a bias, or times a gate."""

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertie.nn.native.library import lazy_library
from bertie.nn.products.choice import is_plain
from bertie.nn.products.linear import Linear, forward_product, linear_gradients

POINTER, WHOLE, FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int

CHECK = """
import ctypes, math, sys
import numpy as np
rng = np.random.default_rng(0)
start, bias = rng.normal(0, 3, (50, 37)).astype(np.float32), rng.normal(0, 1, 37).astype(np.float32)
total = (start + bias).astype(float)
normal = 0.5 * (1 + np.vectorize(math.erf)(total / math.sqrt(2)))
slope = normal + total * np.exp(-total**2 / 2) / math.sqrt(2 * math.pi)
steep = math.sqrt(2 / math.pi)
near = 0.5 * (1 + np.tanh(steep * (total + 0.044715 * total**3)))
near_slope = near + 2 * total * near * (1 - near) * steep * (1 + 3 * 0.044715 * total**2)
library = ctypes.CDLL(sys.argv[1])
pointer, whole, flag = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
library.add_bias_gelu.argtypes = [pointer] * 3 + [whole] * 2 + [flag] * 2
library.gelu_backward.argtypes = [pointer] * 2 + [whole] + [flag] * 2
library.gated_gelu.argtypes = [pointer] * 2 + [whole] * 2 + [flag]
library.gated_gelu_backward.argtypes = [pointer] * 3 + [whole] * 2 + [flag]
for exact, share, slopes in ((1, normal, slope), (0, near, near_slope)):
    x, out, gradient = start.copy(), np.empty_like(start), np.ones_like(start)
    library.add_bias_gelu(x.ctypes.data, bias.ctypes.data, out.ctypes.data, 50, 37, exact, 2)
    library.gelu_backward(x.ctypes.data, gradient.ctypes.data, x.size, exact, 2)
    assert np.abs(x - total).max() < 2e-6
    assert np.abs(out - total * share).max() < 2e-6
    assert np.abs(gradient - slopes).max() < 3e-6
both = np.concatenate([x, start], 1)
out, toward, of_both = np.empty_like(start), rng.normal(0, 1, start.shape).astype(np.float32), np.empty_like(both)
library.gated_gelu(both.ctypes.data, out.ctypes.data, 50, 37, 2)
library.gated_gelu_backward(both.ctypes.data, toward.ctypes.data, of_both.ctypes.data, 50, 37, 2)
assert np.abs(out - total * normal * start).max() < 2e-5
assert np.abs(of_both - np.concatenate([toward * start * slope, toward * total * normal], 1)).max() < 2e-5
"""


TYPES: dict[str, list[Any]] = {
    "add_bias_gelu": [POINTER] * 3 + [WHOLE] * 2 + [FLAG] * 2,
    "gelu_backward": [POINTER] * 2 + [WHOLE] + [FLAG] * 2,
    "gated_gelu": [POINTER] * 2 + [WHOLE] * 2 + [FLAG],
    "gated_gelu_backward": [POINTER] * 3 + [WHOLE] * 2 + [FLAG],
}
kernel = lazy_library("gelu.c", CHECK, TYPES)


def linear_gelu(linear: nn.Linear, states: Tensor, exact: bool = True) -> Tensor | None:
    """gelu(linear(states)), by tanh unless `exact`; or None where torch should do it."""
    # Nothing may be bypassed: neither a subclass's own forward nor a hook.
    plain = type(linear) in (Linear, nn.Linear) and not (linear._forward_hooks or linear._forward_pre_hooks)
    if not plain or linear.bias is None or not is_plain(states, linear.weight, linear.bias) or kernel() is None:
        return None
    hidden: Tensor = _LinearGelu.apply(states, linear.weight, linear.bias, exact)
    return hidden


def gated_gelu(both: Tensor) -> Tensor | None:
    """[..., 2 D] -> gelu(first half) x second half [..., D], or None where torch should do it."""
    if not is_plain(both) or not both.is_contiguous() or kernel() is None:
        return None
    hidden: Tensor = _GatedGelu.apply(both)
    return hidden


class _LinearGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, exact: bool) -> Tensor:
        library = kernel()
        assert library is not None
        learning = any(ctx.needs_input_grad)
        sums, bias = forward_product(states, weight, learning), bias.contiguous()
        hidden = torch.empty_like(sums) if learning else sums
        pointers = (tensor.data_ptr() for tensor in (sums, bias, hidden))
        library.add_bias_gelu(*pointers, sums[..., 0].numel(), sums.shape[-1], exact, torch.get_num_threads())
        if learning:
            ctx.save_for_backward(states, weight, sums)
            ctx.exact = exact
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        library = kernel()
        assert library is not None
        states, weight, sums = ctx.saved_tensors
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        library.gelu_backward(sums.data_ptr(), gradient.data_ptr(), sums.numel(), ctx.exact, torch.get_num_threads())
        of_states, of_weight, of_bias, _ = ctx.needs_input_grad  # weights may be frozen
        gradients = linear_gradients(gradient, states, weight, of_states, of_weight)
        return *gradients, gradient.flatten(0, -2).sum(0) if of_bias else None, None


class _GatedGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor) -> Tensor:
        library = kernel()
        assert library is not None
        width = both.shape[-1] // 2
        hidden = both.new_empty(*both.shape[:-1], width)
        library.gated_gelu(both.data_ptr(), hidden.data_ptr(), hidden[..., 0].numel(), width, torch.get_num_threads())
        ctx.save_for_backward(both)
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        library = kernel()
        assert library is not None
        (both,) = ctx.saved_tensors
        gradient, of_both = gradient.contiguous(), torch.empty_like(both)
        pointers = (tensor.data_ptr() for tensor in (both, gradient, of_both))
        sizes = gradient[..., 0].numel(), gradient.shape[-1]
        library.gated_gelu_backward(*pointers, *sizes, torch.get_num_threads())
        return of_both
