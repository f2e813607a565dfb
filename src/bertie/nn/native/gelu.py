"""A linear layer followed by GELU, with bias and activation in one pass over its output, and its gradients."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertie.nn.native.library import is_plain, load_library

POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64

CHECK = """
import ctypes, math, sys
import numpy as np
rng = np.random.default_rng(0)
x, bias = rng.normal(0, 3, (50, 37)).astype(np.float32), rng.normal(0, 1, 37).astype(np.float32)
total = (x + bias).astype(float)
share = 0.5 * (1 + np.vectorize(math.erf)(total / math.sqrt(2)))
slope = share + total * np.exp(-total**2 / 2) / math.sqrt(2 * math.pi)
out, gradient = np.empty_like(x), np.ones_like(x)
library = ctypes.CDLL(sys.argv[1])
library.add_bias_gelu.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2 + [ctypes.c_int]
library.gelu_backward.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64, ctypes.c_int]
library.add_bias_gelu(x.ctypes.data, bias.ctypes.data, out.ctypes.data, 50, 37, 2)
library.gelu_backward(x.ctypes.data, gradient.ctypes.data, x.size, 2)
assert np.abs(x - total).max() < 2e-6
assert np.abs(out - total * share).max() < 2e-6
assert np.abs(gradient - slope).max() < 2e-6
"""


@cache
def kernel() -> ctypes.CDLL | None:
    library = load_library(Path(__file__).with_name("gelu.c"), CHECK)
    if library is not None:
        library.add_bias_gelu.argtypes = [POINTER] * 3 + [WHOLE] * 2 + [ctypes.c_int]
        library.gelu_backward.argtypes = [POINTER] * 2 + [WHOLE, ctypes.c_int]
    return library


def linear_gelu(linear: nn.Linear, states: Tensor) -> Tensor | None:
    """gelu(linear(states)), or None where torch should do it."""
    # Nothing may be passed over: not a subclass's own forward, or a hook.
    plain = type(linear) is nn.Linear and not (linear._forward_hooks or linear._forward_pre_hooks)
    if not plain or linear.bias is None or not is_plain(states, linear.weight, linear.bias) or kernel() is None:
        return None
    hidden: Tensor = _LinearGelu.apply(states, linear.weight, linear.bias)
    return hidden


class _LinearGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        library = kernel()
        assert library is not None
        sums, bias = F.linear(states, weight), bias.contiguous()
        learning = any(ctx.needs_input_grad)
        hidden = torch.empty_like(sums) if learning else sums
        num_rows, width = sums.numel() // max(sums.shape[-1], 1), sums.shape[-1]
        pointers = (tensor.data_ptr() for tensor in (sums, bias, hidden))
        library.add_bias_gelu(*pointers, num_rows, width, torch.get_num_threads())
        if learning:
            ctx.save_for_backward(states, weight, sums)
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        library = kernel()
        assert library is not None
        states, weight, sums = ctx.saved_tensors
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        library.gelu_backward(sums.data_ptr(), gradient.data_ptr(), sums.numel(), torch.get_num_threads())
        flat = gradient.flatten(0, -2)
        return gradient @ weight, flat.t() @ states.flatten(0, -2), flat.sum(0)
