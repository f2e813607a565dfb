"""Turns heads by the angles of their positions: states [T, N, D] and positions [T] into rotated states."""

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertie.nn.native.library import lazy_library
from bertie.nn.products.choice import is_plain

POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64
TYPES: list[Any] = [POINTER, WHOLE] + [POINTER] * 4 + [WHOLE] * 3 + [ctypes.c_float, ctypes.c_int]

CHECK = """
import ctypes, sys
import numpy as np
rng = np.random.default_rng(0)
x, angles = rng.normal(0, 1, (9, 3, 64)).astype(np.float32), rng.normal(0, 3, (20, 32)).astype(np.float32)
places = rng.integers(0, 20, 9)
cosines, sines = np.cos(angles), np.sin(angles)
out, back = np.empty_like(x), np.empty_like(x)
call = ctypes.CDLL(sys.argv[1]).rotate
pointer, whole = ctypes.c_void_p, ctypes.c_int64
call.argtypes = [pointer, whole] + [pointer] * 4 + [whole] * 3 + [ctypes.c_float, ctypes.c_int]
tables = [array.ctypes.data for array in (cosines, sines, places)]
call(x.ctypes.data, 192, out.ctypes.data, *tables, 9, 3, 64, 1.0, 2)
call(out.ctypes.data, 192, back.ctypes.data, *tables, 9, 3, 64, -1.0, 2)
left, right = x[..., :32], x[..., 32:]
c, s = cosines[places][:, None], sines[places][:, None]
assert np.abs(out - np.concatenate([left * c - right * s, right * c + left * s], -1)).max() < 1e-6
assert np.abs(back - x).max() < 2e-6
"""


kernel = lazy_library("rotary.c", CHECK, {"rotate": TYPES})


def rotate(states: Tensor, places: Tensor, table: Callable[[int], tuple[Tensor, Tensor]]) -> Tensor | None:
    """`table(length)` gives cosines and sines [length, D/2] of all positions below. None where torch should do it."""
    whole = places.dtype == torch.int64 and places.device == states.device and 0 < len(places) == len(states)
    side_by_side = states.stride()[1:] == (states.shape[-1], 1)
    if not (whole and side_by_side and is_plain(states)):
        return None
    library = kernel()
    if library is None or states.shape[-1] % (2 * library.lanes()) or int(places.min()) < 0:
        return None
    length = 1 << int(places.max()).bit_length()  # few lengths, so that tables are found again
    turned: Tensor = _Rotate.apply(states, places.contiguous(), *table(length))
    return turned


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, places: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        ctx.turn = places, cosines, sines
        return _call(states, places, cosines, sines, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        places, cosines, sines = ctx.turn
        return _call(gradient.contiguous(), places, cosines, sines, -1.0), None, None, None


def _call(states: Tensor, places: Tensor, cosines: Tensor, sines: Tensor, sign: float) -> Tensor:
    library = kernel()
    assert library is not None
    out = torch.empty(states.shape)
    pointers = (tensor.data_ptr() for tensor in (out, cosines, sines, places))
    sizes = (*states.shape, sign, torch.get_num_threads())
    library.rotate(states.data_ptr(), states.stride(0), *pointers, *sizes)
    return out
