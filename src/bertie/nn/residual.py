"""Residual layouts: how a sub-layer's output joins the stream it came from.

`enter` turns the stream into a sub-layer's input; `leave` adds the sub-layer's output to the stream.
"""

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn

from bertie.nn.dropout import Dropout
from bertie.spec import Spec


class PostNorm(nn.Module):
    """norm(x + f(x)), as in the first Transformer."""

    def __init__(self, norm: nn.Module, dropout: float):
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    def enter(self, states: Tensor) -> Tensor:
        return states

    def leave(self, states: Tensor, output: Tensor) -> Tensor:
        return self.norm(self.dropout(output, states))


class PreNorm(nn.Module):
    """x + f(norm(x)); the stack then ends with a norm."""

    def __init__(self, norm: nn.Module, dropout: float):
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    def enter(self, states: Tensor) -> Tensor:
        return self.norm(states)

    def leave(self, states: Tensor, output: Tensor) -> Tensor:
        return self.dropout(output, states)


class PostNormSpec(Spec):
    kind: Literal["post-norm"] = "post-norm"
    norm_eps: float = Field(default=1e-12, gt=0)
    dropout: float = Field(default=0.1, ge=0, lt=1)

    def build(self, width: int) -> PostNorm:
        return PostNorm(nn.LayerNorm(width, eps=self.norm_eps), self.dropout)

    def build_final(self, width: int) -> nn.Module:
        return nn.Identity()


class PreNormSpec(Spec):
    kind: Literal["pre-norm"] = "pre-norm"
    norm_eps: float = Field(default=1e-12, gt=0)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    bias: bool = True

    def build(self, width: int) -> PreNorm:
        return PreNorm(self.build_final(width), self.dropout)

    def build_final(self, width: int) -> nn.Module:
        return nn.LayerNorm(width, eps=self.norm_eps, bias=self.bias)


AnyResidual = Annotated[PostNormSpec | PreNormSpec, Field(discriminator="kind")]
