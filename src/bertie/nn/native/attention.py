"""Attention over flat rows by the kernel in attention.c: queries, keys and values [T, N, D] enter, mixed values leave.

Faster than torch's fused kernel on short rows, where calls and padding cost more than the arithmetic; no gradients.
"""

import ctypes
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from bertie.batch import Ragged
from bertie.nn.layout import Layout
from bertie.nn.native.library import load_library

LONGEST = 256  # keys a row; measured: beyond it torch's kernel, which also blocks over keys, is as fast

CHECK = """
import ctypes, sys
import numpy as np
rng = np.random.default_rng(0)
lengths = np.array([1, 7, 40, 129, 0, 16], np.int64)
q, k, v = (rng.standard_normal((lengths.sum(), 2, 32)).astype(np.float32) for _ in range(3))
out = np.empty_like(q)
call = ctypes.CDLL(sys.argv[1]).attend
call.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 7 + [ctypes.c_float, ctypes.c_int]
pointers = [array.ctypes.data for array in (q, k, v, out, lengths, lengths)]
assert call(*pointers, len(lengths), 2, 32, 64, 64, 64, 64, 32**-0.5, 2) == 0
start = 0
for length in lengths:
    rows = slice(start, start + length)
    start += length
    for head in range(2):
        scores = q[rows, head].astype(float) @ k[rows, head].T.astype(float) * 32**-0.5
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
        expected = weights / weights.sum(-1, keepdims=True) @ v[rows, head]
        assert np.abs(out[rows, head] - expected).max(initial=0) < 1e-5
"""


@cache
def kernel() -> ctypes.CDLL | None:
    library = load_library(Path(__file__).with_name("attention.c"), CHECK)
    if library is not None:
        library.attend.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 7 + [ctypes.c_float, ctypes.c_int]
    return library


def attend(query: Tensor, key: Tensor, value: Tensor, layout: Layout) -> Tensor | None:
    """[Tq, N, D], or None where torch should do it: rows too long, no kernel, another device or type, gradients."""
    rows, keys = layout.query.rows, layout.key.rows
    states = (query, key, value)
    _, num_heads, width = query.shape
    if torch.is_grad_enabled() or keys.longest > LONGEST or not all(_fits(state) for state in states):
        return None
    if key.shape != value.shape or key.shape[1:] != query.shape[1:] or rows.num_rows != keys.num_rows:
        return None
    if not (_covers(rows, query) and _covers(keys, key)):
        return None
    library = kernel()
    if library is None or width % library.lanes() or not keys.lengths.all():
        return None
    out = torch.empty(query.shape, dtype=torch.float32)
    failed = library.attend(
        *(state.data_ptr() for state in (*states, out, rows.lengths, keys.lengths)),
        rows.num_rows,
        num_heads,
        width,
        *(state.stride(0) for state in (*states, out)),
        width**-0.5,
        torch.get_num_threads(),
    )
    return None if failed else out


def _covers(rows: Ragged, states: Tensor) -> bool:
    """The kernel walks by these lengths: they must be what they are taken for, and end where the states end."""
    lengths = rows.lengths
    plain = lengths.dtype == torch.int64 and lengths.device.type == "cpu" and lengths.is_contiguous()
    return plain and min(rows.sizes, default=0) >= 0 and sum(rows.sizes) == len(states)


def _fits(state: Tensor) -> bool:
    """Heads side by side, in float32, on the processor."""
    plain = state.dtype == torch.float32 and state.device.type == "cpu"
    return plain and state.stride()[1:] == (state.shape[-1], 1)
