"""First weights: normal for matrices and tables, zero for biases, one for norms."""

from typing import TypeVar

from torch import nn

Part = TypeVar("Part", bound=nn.Module)


def initialised(part: Part, std: float) -> Part:
    for module in part.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return part
