"""First weights: normal for matrices and tables, zero for biases, one for norms."""

from typing import TypeVar

from torch import nn

Part = TypeVar("Part", bound=nn.Module)


def initialized(part: Part, std: float) -> Part:
    for module in part.modules():
        if not isinstance(module, nn.Linear | nn.Embedding) or module.weight.is_meta:  # a mere shape has no numbers
            continue
        nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return part
