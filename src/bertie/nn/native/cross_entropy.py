"""A vocabulary's logits and their cross entropy in one: states and targets enter, losses and hits leave.

The logits are held once and become their own gradient in place; torch holds them three times over.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertie.nn.native.library import is_plain, load_library

POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64
COLUMNS = 2048  # of the vocabulary in one product; measured: 1.4x one product over all of it

CHECK = """
import ctypes, sys
import numpy as np
rng = np.random.default_rng(0)
products, bias = rng.normal(0, 3, (9, 1003)).astype(np.float32), rng.normal(0, 1, 1003).astype(np.float32)
logits = products + bias
targets = np.array([0, 1002, *logits[2:].argmax(-1)], np.int64)
weights = np.exp(logits - logits.max(-1, keepdims=True).astype(float))
weights /= weights.sum(-1, keepdims=True)
losses, correct = np.empty(9, np.float32), np.empty(9, np.float32)
call = ctypes.CDLL(sys.argv[1]).cross_entropy
call.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_int]
hits = logits.argmax(-1) == targets
call(*(array.ctypes.data for array in (products, bias, targets, losses, correct)), 9, 1003, 2)
assert np.abs(losses + np.log(weights[np.arange(9), targets])).max() < 1e-5
weights[np.arange(9), targets] -= 1
assert np.abs(products - weights).max() < 1e-6
assert (correct == hits).all()
"""


@cache
def kernel() -> ctypes.CDLL | None:
    library = load_library(Path(__file__).with_name("cross_entropy.c"), CHECK)
    if library is not None:
        library.cross_entropy.argtypes = [POINTER] * 5 + [WHOLE] * 2 + [ctypes.c_int]
    return library


def linear_cross_entropy(states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
    """Losses [P], and 1 where the target was the first choice [P]; or None where torch should do it."""
    if not is_plain(states, weight, bias) or targets.dtype != torch.int64 or kernel() is None:
        return None
    # torch says what is wrong with a target; the kernel would write where it should not.
    if not len(targets) or targets.shape != states.shape[:1] or not _inside(targets, len(weight)):
        return None
    losses, correct = _LinearCrossEntropy.apply(states, weight, bias, targets)
    return losses, correct


def _inside(targets: Tensor, size: int) -> bool:
    return int(targets.min()) >= 0 and int(targets.max()) < size


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        library = kernel()
        assert library is not None
        num_rows, size = len(states), len(weight)
        logits = torch.empty(num_rows, size)
        for first in range(0, size, COLUMNS):
            part = slice(first, first + COLUMNS)
            torch.mm(states, weight[part].t(), out=logits[:, part])
        losses, correct = torch.empty(num_rows), torch.empty(num_rows)
        pointers = (tensor.data_ptr() for tensor in (logits, bias.contiguous(), targets.contiguous(), losses, correct))
        library.cross_entropy(*pointers, num_rows, size, torch.get_num_threads())
        ctx.mark_non_differentiable(correct)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(states, weight, logits)
        return losses, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, unused: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        states, weight, of_logits = ctx.saved_tensors
        of_states = (of_logits @ weight) * gradient[:, None]
        of_weight = of_logits.t() @ (states * gradient[:, None])
        return of_states, of_weight, of_logits.t() @ gradient, None
