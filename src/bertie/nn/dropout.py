"""Dropout: sets some numbers to 0 and scales up the others, and adds other states where they are given."""

import torch.nn.functional as F
from torch import Tensor, nn

from bertie.nn.native.dropout_kernel import drop


class Dropout(nn.Dropout):
    def forward(self, states: Tensor, added: Tensor | None = None) -> Tensor:
        """dropout(states) + added"""
        if self.training and self.p > 0:
            if (dropped := drop(states, self.p, added)) is not None:
                return dropped
            states = F.dropout(states, self.p)
        return states if added is None else states + added
