"""Pooling: turns the hidden states of a row's tokens into one vector."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, StrictInt
from torch import Tensor, nn

from bertie.batch import Ragged
from bertie.devices import copied
from bertie.errors import SpecError
from bertie.nn.products import Linear, linear
from bertie.spec import Spec


class FirstDense(nn.Module):
    """tanh(W x) of a row's first state: what sentence-level heads are trained on."""

    def __init__(self, width: int):
        super().__init__()
        self.dense = Linear(width, width)

    def forward(self, first: Tensor) -> Tensor:
        return torch.tanh(self.dense(first))


class FirstDenseSpec(Spec):
    kind: Literal["first-dense"] = "first-dense"

    def build(self, width: int) -> FirstDense:
        return FirstDense(width)


def first_token(states: Ragged) -> Tensor:
    return _token_at(states, states.starts)


def last_token(states: Ragged) -> Tensor:
    return _token_at(states, states.starts + states.lengths_here - 1)


def _token_at(states: Ragged, places: Tensor) -> Tensor:
    if states.lengths.all():
        return states.values[places]
    found = mean_token(states)  # zeros for rows without tokens
    filled = copied((states.lengths > 0).nonzero()[:, 0], states.device)
    found[filled] = states.values[places[filled]]
    return found


def mean_token(states: Ragged) -> Tensor:
    total = states.values.new_zeros(states.num_rows, states.values.shape[-1])
    total = total.index_add(0, states.row_ids, states.values)
    return total / states.lengths_here[:, None].clamp(min=1)


def max_token(states: Ragged) -> Tensor:
    lowest = states.values.new_full((states.num_rows, states.values.shape[-1]), -torch.inf)
    rows = states.row_ids[:, None].expand_as(states.values)
    highest = lowest.scatter_reduce(0, rows, states.values, "amax")
    return highest.masked_fill(states.lengths_here[:, None] == 0, 0.0)


TokenPooling = Literal["first", "mean", "max"]
TOKEN_POOLING: dict[TokenPooling, Callable[[Ragged], Tensor]] = {
    "first": first_token,
    "mean": mean_token,
    "max": max_token,
}


Activation = Literal["identity", "tanh"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"identity": lambda values: values, "tanh": torch.tanh}


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """A dense layer over rows' vectors: such a layer whitens them. It is kept with the pooling."""

    weight: Tensor  # [size, width]
    bias: Tensor | None = None  # [size]
    activation: Activation = "identity"

    def __call__(self, vectors: Tensor) -> Tensor:
        weight, bias = self.weight.to(vectors), None if self.bias is None else self.bias.to(vectors)
        return ACTIVATIONS[self.activation](linear(vectors, weight, bias))

    def __repr__(self) -> str:
        numbers = hashlib.sha256(self.weight.cpu().contiguous().numpy().data)
        if self.bias is not None:
            numbers.update(self.bias.cpu().contiguous().numpy().data)
        return f"Projection({self.activation}, {list(self.weight.shape)}, sha256 {numbers.hexdigest()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Projection) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Pooling(Spec):
    """Which layers make a token's vector, and how tokens' vectors make a row's. A layer's number counts from the
    embeddings, 0, to the last, or backwards from -1. Of a row's vector the first `size` numbers are kept."""

    tokens: TokenPooling = "mean"
    layers: Literal["last", "sum4", "concat4"] | StrictInt = "last"
    normalize: bool = False
    size: int | None = Field(default=None, ge=1)  # None: all

    def __call__(self, states: Ragged, layers: tuple[Tensor, ...] = (), projection: Projection | None = None) -> Tensor:
        vectors = TOKEN_POOLING[self.tokens](states.with_values(self.mix(states, layers)))
        if projection is not None:
            vectors = projection(vectors)
        vectors = vectors[:, : self.size]
        return F.normalize(vectors, dim=-1) if self.normalize else vectors

    @property
    def needs_layers(self) -> bool:
        return self.layers != "last"

    def mix(self, states: Ragged, layers: tuple[Tensor, ...]) -> Tensor:
        """[T, H] or, for a concatenation, [T, 4H]"""
        if self.layers == "last":
            return states.values
        if isinstance(self.layers, int):
            if not -len(layers) <= self.layers < len(layers):
                raise SpecError(f"there is no layer {self.layers}", hint=f"choose 0 to {len(layers) - 1}")
            return layers[self.layers]
        if len(layers) < 5:
            raise SpecError(f"{self.layers} needs four layers, this model has {len(layers) - 1}")
        return sum(layers[-4:-1], layers[-1]) if self.layers == "sum4" else torch.cat(layers[-4:], -1)

    def width(self, hidden: int) -> int:
        """Of a row's vector, before a projection."""
        return 4 * hidden if self.layers == "concat4" else hidden
