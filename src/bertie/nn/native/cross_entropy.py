"""A vocabulary's logits and their cross entropy in one: turns states and targets into losses, hits and draws.

The logits are held once and become their own gradient in place; torch holds them three times over.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertie.nn.native.library import lazy_library
from bertie.nn.products.choice import Role, is_plain
from bertie.nn.products.linear import engine_of, forward_product, multiply

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
call.argtypes = [ctypes.c_void_p] * 7 + [ctypes.c_int64] * 2 + [ctypes.c_int]
hits = logits.argmax(-1) == targets
sums = weights.cumsum(-1)
drawn = np.array([0, 1002, 5, 17, 400, 401, 402, 900, 1001], np.int64)
dice = (sums[np.arange(9), drawn] - weights[np.arange(9), drawn] / 2).astype(np.float32)
found = np.empty(9, np.int64)
arrays = (products, bias, targets, dice, losses, correct, found)
call(*(array.ctypes.data for array in arrays), 9, 1003, 2)
sums = np.concatenate([np.zeros((9, 1)), sums], -1)
assert (sums[np.arange(9), found] < dice + 1e-6).all() and (sums[np.arange(9), found + 1] > dice - 1e-6).all()
assert np.abs(losses + np.log(weights[np.arange(9), targets])).max() < 1e-5
weights[np.arange(9), targets] -= 1
assert np.abs(products - weights).max() < 1e-6
assert (correct == hits).all()
"""


TYPES: list[Any] = [POINTER] * 7 + [WHOLE] * 2 + [ctypes.c_int]
kernel = lazy_library("cross_entropy.c", CHECK, {"cross_entropy": TYPES})


def linear_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, dice: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Losses [P], 1 where the target has the highest logit [P], and what `dice` [P] drew, if given; or None
    where torch should do it."""
    floats = (states, weight, bias) if dice is None else (states, weight, bias, dice)
    if not is_plain(*floats) or targets.dtype != torch.int64 or targets.device != states.device or kernel() is None:
        return None
    if not len(targets) or targets.shape != states.shape[:1]:
        return None
    # torch reports a wrong target; the kernel would write where it should not.
    if int(targets.min()) < 0 or int(targets.max()) >= len(weight):
        return None
    if dice is not None and dice.shape != targets.shape:
        return None
    losses, correct, drawn = _LinearCrossEntropy.apply(states, weight, bias, targets, dice)
    return losses, correct, drawn


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, dice: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        library = kernel()
        assert library is not None
        num_rows, size = len(states), len(weight)
        learning = any(ctx.needs_input_grad)
        if engine_of(states, weight, learning) is None:
            logits = torch.empty(num_rows, size)
            for first in range(0, size, COLUMNS):
                part = slice(first, first + COLUMNS)
                torch.mm(states, weight[part].t(), out=logits[:, part])
        else:
            logits = forward_product(states, weight, learning)
        losses, correct = torch.empty(num_rows), torch.empty(num_rows)
        dice = None if dice is None else dice.contiguous()
        drawn = torch.empty(0 if dice is None else num_rows, dtype=torch.int64)
        arrays = (logits, bias.contiguous(), targets.contiguous(), dice, losses, correct, drawn)
        pointers = (None if array is None else array.data_ptr() for array in arrays)
        library.cross_entropy(*pointers, num_rows, size, torch.get_num_threads())
        ctx.mark_non_differentiable(correct, drawn)
        if learning:
            ctx.save_for_backward(states, weight, logits)
        return losses, correct, drawn

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *unused: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, of_logits = ctx.saved_tensors
        of_states = multiply(Role.STATES_GRADIENT, of_logits, weight, weight) * gradient[:, None]
        of_weight = multiply(Role.WEIGHT_GRADIENT, of_logits.t(), states * gradient[:, None], weight)
        return of_states, of_weight, of_logits.t() @ gradient, None, None
