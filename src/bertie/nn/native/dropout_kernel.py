"""Dropout on the CPU, optionally added to other states.

torch draws its random numbers one after another on one core. Here they are a function of a seed and the position, drawn
on all cores and never kept. The seed comes from torch's generator, so `torch.manual_seed` decides as usual.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertie.nn.native.library import lazy_library
from bertie.nn.products.choice import is_plain

POINTER = ctypes.c_void_p
TYPES: list[Any] = [POINTER] * 3 + [ctypes.c_int64, ctypes.c_float, ctypes.c_uint64, ctypes.c_int]

CHECK = """
import ctypes, sys
import numpy as np
x = np.arange(1, 40_008, dtype=np.float32)
added = np.full_like(x, 0.5)
first, again, other = (np.empty_like(x) for _ in range(3))
call = ctypes.CDLL(sys.argv[1]).drop
call.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64, ctypes.c_float, ctypes.c_uint64, ctypes.c_int]
call(x.ctypes.data, None, first.ctypes.data, x.size, 0.25, 7, 2)
call(x.ctypes.data, added.ctypes.data, again.ctypes.data, x.size, 0.25, 7, 1)
call(x.ctypes.data, None, other.ctypes.data, x.size, 0.25, 8, 2)
kept = first != 0
assert np.abs(first[kept] / x[kept] - 4 / 3).max() < 1e-6
assert np.abs(again - first - 0.5).max() < 1e-2
assert abs(kept.mean() - 0.75) < 0.01
assert abs((kept & (other != 0)).mean() - 0.5625) < 0.01
"""


kernel = lazy_library("dropout.c", CHECK, {"drop": TYPES})


def drop(states: Tensor, rate: float, added: Tensor | None = None) -> Tensor | None:
    """dropout(states) + added, or None where torch should do it."""
    tensors = (states,) if added is None else (states, added)
    alike = added is None or added.shape == states.shape
    if not alike or not is_plain(*tensors) or not all(each.is_contiguous() for each in tensors) or kernel() is None:
        return None
    dropped: Tensor = _Drop.apply(states, added, rate)
    return dropped


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, added: Tensor | None, rate: float) -> Tensor:
        ctx.rate, ctx.seed = rate, int(torch.randint(1 << 62, ()))
        return _call(states, added, rate, ctx.seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        own = _call(gradient.contiguous(), None, ctx.rate, ctx.seed)
        return own, gradient if ctx.needs_input_grad[1] else None, None


def _call(states: Tensor, added: Tensor | None, rate: float, seed: int) -> Tensor:
    library = kernel()
    assert library is not None
    out = torch.empty_like(states)
    pointers = (states.data_ptr(), None if added is None else added.data_ptr(), out.data_ptr())
    library.drop(*pointers, states.numel(), rate, seed, torch.get_num_threads())
    return out
