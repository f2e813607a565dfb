"""Feed-forward: changes each token's state on its own, without changing its width."""

from collections.abc import Callable
from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.nn.native.gelu import gated_gelu, linear_gelu
from bertie.nn.products import Linear
from bertie.spec import LARGEST, Spec


def gelu_tanh(states: Tensor) -> Tensor:
    return F.gelu(states, approximate="tanh")


ActivationName = Literal["gelu", "gelu_tanh", "relu", "silu", "tanh"]
ACTIVATIONS: dict[ActivationName, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "relu": F.relu,
    "silu": F.silu,
    "tanh": Tensor.tanh,
}
EXACT = {F.gelu: True, gelu_tanh: False}  # what our own kernel computes together with the bias


class Dense(nn.Module):
    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.up = Linear(width, inner)
        self.activation = activation
        self.down = Linear(inner, width)

    def forward(self, states: Tensor) -> Tensor:
        exact = EXACT.get(self.activation)
        hidden = None if exact is None else linear_gelu(self.up, states, exact)
        return self.down(self.activation(self.up(states)) if hidden is None else hidden)


class Gated(nn.Module):
    """One half of what goes up decides how much of the other half comes down. Shazeer, 2020."""

    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor], bias: bool):
        super().__init__()
        self.up = Linear(width, 2 * inner, bias=bias)  # the half that is activated, then the gate
        self.activation = activation
        self.down = Linear(inner, width, bias=bias)

    def forward(self, states: Tensor) -> Tensor:
        both = self.up(states)
        hidden = gated_gelu(both) if self.activation is F.gelu else None
        if hidden is None:
            active, gate = both.chunk(2, -1)
            hidden = self.activation(active) * gate
        return self.down(hidden)


class DenseSpec(Spec):
    kind: Literal["dense"] = "dense"
    inner: int = Field(ge=1, le=LARGEST)
    activation: ActivationName = "gelu"

    def build(self, width: int) -> Dense:
        return Dense(width, self.inner, ACTIVATIONS[self.activation])


class GatedSpec(Spec):
    kind: Literal["gated"] = "gated"
    inner: int = Field(ge=1, le=LARGEST)
    activation: ActivationName = "gelu"
    bias: bool = True

    def build(self, width: int) -> Gated:
        return Gated(width, self.inner, ACTIVATIONS[self.activation], self.bias)


AnyFeedForward = Annotated[DenseSpec | GatedSpec, Field(discriminator="kind")]
