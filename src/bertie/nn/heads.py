"""Output heads: the states of the positions where something is predicted enter, logits leave."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertie.nn.native.cross_entropy import linear_cross_entropy


class VocabularyHead(nn.Module):
    """A transform, then one logit a vocabulary entry. Tied: the weight is the token table's, set by the model."""

    def __init__(self, width: int, size: int, activation: Callable[[Tensor], Tensor], norm_eps: float, tied: bool):
        super().__init__()
        self.weight: nn.Parameter  # [V, H]
        self.dense = nn.Linear(width, width)
        self.activation = activation
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.register_parameter("weight", None if tied else nn.Parameter(torch.randn(size, width) * width**-0.5))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, states: Tensor) -> Tensor:
        """[P, H] -> [P, V]"""
        return F.linear(self.transform(states), self.weight, self.bias)

    def transform(self, states: Tensor) -> Tensor:
        """[P, H] -> [P, H]"""
        return self.norm(self.activation(self.dense(states)))

    def loss(self, states: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """[P, H], [P] -> the cross entropy [P], and 1 where the target was the first choice [P]."""
        states = self.transform(states)
        if (native := linear_cross_entropy(states, self.weight, self.bias, targets)) is not None:
            return native
        logits = F.linear(states, self.weight, self.bias)
        return F.cross_entropy(logits, targets, reduction="none"), (logits.detach().argmax(-1) == targets).float()


class Classifier(nn.Module):
    """One logit a class."""

    def __init__(self, width: int, num_classes: int):
        super().__init__()
        self.output = nn.Linear(width, num_classes)

    def forward(self, states: Tensor) -> Tensor:
        return self.output(states)
