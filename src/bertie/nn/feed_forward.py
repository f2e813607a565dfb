"""Feed-forward: each token's state enters alone and leaves in the same width."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.nn.native.gelu import linear_gelu
from bertie.spec import Spec

ActivationName = Literal["gelu", "gelu_tanh", "relu", "silu", "tanh"]
ACTIVATIONS: dict[ActivationName, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "tanh": Tensor.tanh,
}


class Dense(nn.Module):
    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.activation = activation
        self.down = nn.Linear(inner, width)

    def forward(self, states: Tensor) -> Tensor:
        hidden = linear_gelu(self.up, states) if self.activation is F.gelu else None
        return self.down(self.activation(self.up(states)) if hidden is None else hidden)


class DenseSpec(Spec):
    kind: Literal["dense"] = "dense"
    inner: int = Field(ge=1)
    activation: ActivationName = "gelu"

    def build(self, width: int) -> Dense:
        return Dense(width, self.inner, ACTIVATIONS[self.activation])
