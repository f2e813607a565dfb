"""Linear layers whose products, forward and of both gradients, are computed by the engine that `choice.py` names."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertie.nn.products.choice import Role, engine_for, is_plain


class Linear(nn.Linear):
    """`nn.Linear` through the chosen engine."""

    def forward(self, states: Tensor) -> Tensor:
        return linear(states, self.weight, self.bias)


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[..., K] -> [..., N] by a weight [N, K], as `F.linear`."""
    if not is_plain(states, weight):
        return F.linear(states, weight, bias)
    learning = torch.is_grad_enabled() and (states.requires_grad or weight.requires_grad)
    num_rows = states.numel() // max(states.shape[-1], 1)
    engine = engine_for(Role.FORWARD if learning else Role.INFERENCE, weight.shape, num_rows)
    if engine is None:
        return F.linear(states, weight, bias)
    if learning:
        result: Tensor = _Linear.apply(states, weight)
    else:
        result = engine.linear(states.flatten(0, -2), weight).unflatten(0, states.shape[:-1])
    return result if bias is None else result + bias


def multiply(role: Role, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """first [M, K] x second [K, N], for code with a gradient of its own: `role` says which product of a linear layer
    with this weight it is. Has no gradient."""
    num_rows = first.shape[1] if role is Role.WEIGHT_GRADIENT else first.shape[0]
    engine = engine_for(role, weight.shape, num_rows)
    if engine is None or engine.multiply is None:
        return torch.mm(first, second)
    return engine.multiply(first, second)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(states, weight)
        flat = states.flatten(0, -2)
        return multiply(Role.FORWARD, flat, weight.t(), weight).unflatten(0, states.shape[:-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        states, weight = ctx.saved_tensors
        of_states, of_weight = ctx.needs_input_grad
        return linear_gradients(gradient, states, weight, of_states, of_weight)


def linear_gradients(
    gradient: Tensor, states: Tensor, weight: Tensor, of_states: bool = True, of_weight: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of the states and of the weight, from that of `linear(states, weight)`."""
    flat = gradient.flatten(0, -2)
    return (
        multiply(Role.STATES_GRADIENT, flat, weight, weight).view_as(states) if of_states else None,
        multiply(Role.WEIGHT_GRADIENT, flat.t(), states.flatten(0, -2), weight) if of_weight else None,
    )
