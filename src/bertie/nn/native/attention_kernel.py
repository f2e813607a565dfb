"""Attention over flat rows by the kernel in attention.c: turns queries, keys and values [T, N, D] into mixed values.

Faster than torch's fused kernel on short rows, where calls and padding cost more than the arithmetic, and with dropout
or a reach, which torch's kernel lacks. Weights are not kept for the gradients but computed again.
"""

import ctypes
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertie.batch import Ragged
from bertie.nn.layout import Layout
from bertie.nn.native.library import lazy_library

LONGEST = 256  # keys a row; measured: beyond it torch's kernel, which also blocks over keys, is as fast
LONGEST_DROPPED = 2048  # with dropout torch has no kernel
LONGEST_NEAR = 65_535  # with a reach torch has none either; dropout is drawn by 16-bit positions
EVERYWHERE = 1 << 40  # further than any row
POINTER, WHOLE, NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float

CHECK = Path(__file__).with_name("attention_check.py").read_text(encoding="utf-8")


ENDS: list[Any] = [NUMBER, NUMBER, ctypes.c_uint64, ctypes.c_int]
TYPES: dict[str, list[Any]] = {
    "lanes": [],
    "attend": [POINTER] * 7 + [WHOLE] * 8 + ENDS,
    "attend_backward": [POINTER] * 10 + [WHOLE] * 4 + [POINTER] + ENDS,
}
kernel = lazy_library("attention.c", CHECK, TYPES)


def attend(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, dropout: float = 0.0, reach: int | None = None
) -> Tensor | None:
    """[Tq, N, D], or None where torch should do it: rows too long, no kernel, another device or type. With a reach a
    token sees no further than that to either side."""
    rows, keys = layout.query.rows, layout.key.rows
    longest = LONGEST_DROPPED if dropout else LONGEST
    if max(rows.longest, keys.longest) > (longest if reach is None else LONGEST_NEAR):
        return None
    if reach is not None and layout.query is not layout.key:  # it is not known where keys begin
        return None
    if not all(_fits(state) for state in (query, key, value)) or rows.num_rows != keys.num_rows:
        return None
    if key.shape != value.shape or key.shape[1:] != query.shape[1:]:
        return None
    if not (_covers(rows, query) and _covers(keys, key) and keys.lengths.all()):
        return None
    library = kernel()
    if library is None or query.shape[-1] % library.lanes():
        return None
    mixed: Tensor = _Attend.apply(query, key, value, rows, keys, dropout, EVERYWHERE if reach is None else reach)
    return mixed


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, rows: Ragged, keys: Ragged, dropout: float, reach: int
    ) -> Tensor:
        library = kernel()
        assert library is not None
        seed = int(torch.randint(1 << 62, ())) if dropout else 0
        num_heads, width = query.shape[1:]
        out = torch.empty(query.shape)
        learning = any(ctx.needs_input_grad)
        logs = torch.empty(query.shape[:2]) if learning else None
        failed = library.attend(
            *(state.data_ptr() for state in (query, key, value, out)),
            None if logs is None else logs.data_ptr(),
            *(side.lengths.data_ptr() for side in (rows, keys)),
            rows.num_rows,
            num_heads,
            width,
            reach,
            *(state.stride(0) for state in (query, key, value, out)),
            width**-0.5,
            dropout,
            seed,
            torch.get_num_threads(),
        )
        if failed:
            raise MemoryError("not enough memory for attention")
        if learning:
            ctx.save_for_backward(query, key, value, logs)
            ctx.rows, ctx.keys, ctx.dropout, ctx.reach, ctx.seed = rows, keys, dropout, reach, seed
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        library = kernel()
        assert library is not None
        query, key, value, logs = ctx.saved_tensors
        gradient = gradient if _fits(gradient) else gradient.contiguous()
        found = [torch.empty(state.shape) for state in (query, key, value)]
        num_heads, width = query.shape[1:]
        steps = [state.stride(0) for state in (query, key, value, gradient, *found)]
        failed = library.attend_backward(
            *(state.data_ptr() for state in (query, key, value, gradient, logs, *found)),
            *(side.lengths.data_ptr() for side in (ctx.rows, ctx.keys)),
            ctx.rows.num_rows,
            num_heads,
            width,
            ctx.reach,
            (WHOLE * len(steps))(*steps),
            width**-0.5,
            ctx.dropout,
            ctx.seed,
            torch.get_num_threads(),
        )
        if failed:
            raise MemoryError("not enough memory for the gradients of attention")
        return *found, None, None, None, None


def _covers(rows: Ragged, states: Tensor) -> bool:
    """Whether the lengths, which the kernel trusts, are of the right type and add up to the states."""
    lengths = rows.lengths
    plain = lengths.dtype == torch.int64 and lengths.device.type == "cpu" and lengths.is_contiguous()
    return plain and min(rows.sizes, default=0) >= 0 and sum(rows.sizes) == len(states)


def _fits(state: Tensor) -> bool:
    """Whether heads lie side by side, in float32, on the CPU."""
    plain = state.dtype == torch.float32 and state.device.type == "cpu"
    return plain and state.stride()[1:] == (state.shape[-1], 1)
