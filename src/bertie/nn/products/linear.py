"""Linear layers whose products, forward and of both gradients, are computed by the engine that `choice.py` names."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertie.nn.products.choice import Role, engine_for, is_plain
from bertie.nn.products.engines import Engine, weights_are_still


class Linear(nn.Linear):
    """`nn.Linear` through the chosen engine."""

    def forward(self, states: Tensor) -> Tensor:
        return linear(states, self.weight, self.bias)


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[..., K] -> [..., N] by a weight [N, K], as `F.linear`."""
    tensors = (states, weight) if bias is None else (states, weight, bias)
    learning = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if not is_plain(*tensors) or engine_of(states, weight, learning) is None:
        return F.linear(states, weight, bias)
    if not learning:
        return forward_product(states, weight, learning, bias)
    result: Tensor = _Linear.apply(states, weight, bias)
    return result


def engine_of(states: Tensor, weight: Tensor, learning: bool) -> Engine | None:
    """None where torch should do it. Weights that may change are never kept in another layout."""
    role = Role.FORWARD if learning or not weights_are_still() else Role.INFERENCE
    return engine_for(role, weight.shape, states.numel() // max(states.shape[-1], 1))


def forward_product(states: Tensor, weight: Tensor, learning: bool, bias: Tensor | None = None) -> Tensor:
    """`linear` for code with a gradient of its own, which it has if it is `learning`."""
    engine = engine_of(states, weight, learning)
    if engine is None:
        return F.linear(states, weight, bias)
    return engine.linear(states.flatten(0, -2), weight, bias).unflatten(0, states.shape[:-1])


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
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(states, weight)
        return forward_product(states, weight, True, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        of_states, of_weight, of_bias = ctx.needs_input_grad
        gradients = linear_gradients(gradient, states, weight, of_states, of_weight)
        return *gradients, gradient.flatten(0, -2).sum(0) if of_bias else None


def linear_gradients(
    gradient: Tensor, states: Tensor, weight: Tensor, of_states: bool = True, of_weight: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of the states and of the weight, from that of `linear(states, weight)`."""
    flat = gradient.flatten(0, -2)
    return (
        multiply(Role.STATES_GRADIENT, flat, weight, weight).view_as(states) if of_states else None,
        multiply(Role.WEIGHT_GRADIENT, flat.t(), states.flatten(0, -2), weight) if of_weight else None,
    )
