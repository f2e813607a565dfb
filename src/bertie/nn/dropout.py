"""Dropout: sets some numbers to 0 and scales up the others, and adds other states where they are given."""

import torch.nn.functional as F
from torch import Tensor, nn

from bertie.nn.native.dropout import drop


class Dropout(nn.Module):
    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, states: Tensor, added: Tensor | None = None) -> Tensor:
        """dropout(states) + added"""
        if self.training and self.rate > 0:
            if (dropped := drop(states, self.rate, added)) is not None:
                return dropped
            states = F.dropout(states, self.rate)
        return states if added is None else states + added

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
