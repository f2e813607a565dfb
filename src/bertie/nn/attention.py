"""Attention: query and key states enter, mixed states leave. Self, cross and two streams are the caller's wiring."""

from typing import Annotated, Literal, Protocol

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.layout import Layout
from bertie.nn.relative import RelativeSpec
from bertie.nn.rotary import RotarySpec
from bertie.nn.scoring import DotProductSpec
from bertie.spec import Spec

AnyScorer = Annotated[DotProductSpec | RotarySpec | RelativeSpec, Field(discriminator="kind")]

Memory = object
"""What a mixer keeps between calls; only the mixer that made it looks inside."""


class Mixer(Protocol):
    """Query and key states are separate arguments: cross attention and two streams are then wiring of the stack."""

    def __call__(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: Memory | None = None
    ) -> tuple[Tensor, Memory | None]: ...


class Attention(nn.Module):
    """Multi-head attention. With `memory_length` the last key states of each row are kept for the next call."""

    def __init__(self, width: int, num_heads: int, scorer: nn.Module, memory_length: int = 0, bias: bool = True):
        super().__init__()
        self.num_heads, self.memory_length = num_heads, memory_length
        self.project = nn.Linear(width, 3 * width, bias=bias)  # queries, keys and values, one below the other
        self.scorer = scorer
        self.output = nn.Linear(width, width, bias=bias)

    def forward(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: Memory | None = None
    ) -> tuple[Tensor, Memory | None]:
        kept = None
        same = query_states is key_states
        if memory is not None:
            assert isinstance(memory, Ragged)
            same = False
            own = layout.key.rows.with_values(key_states)
            key_states = memory.join(own).values
            layout = layout.behind(memory)
        if self.memory_length:
            kept = layout.key.rows.with_values(key_states.detach()).last(self.memory_length)
        query, key, value = self._project(query_states, key_states, same)
        mixed = self.scorer(query, key, value, layout)  # [Tq, N, D]
        return self.output(mixed.flatten(1)), kept

    def _project(self, query_states: Tensor, key_states: Tensor, same: bool) -> tuple[Tensor, ...]:
        width = query_states.shape[-1]
        if same:
            parts = self.project(query_states).unflatten(-1, (3, self.num_heads, -1))
            return tuple(parts.unbind(1))
        weight, bias = self.project.weight, self.project.bias
        first, rest = (None, None) if bias is None else (bias[:width], bias[width:])
        query = F.linear(query_states, weight[:width], first).unflatten(-1, (self.num_heads, -1))
        parts = F.linear(key_states, weight[width:], rest).unflatten(-1, (2, self.num_heads, -1))
        return query, *parts.unbind(1)


class AttentionSpec(Spec):
    kind: Literal["attention"] = "attention"
    num_heads: int = Field(ge=1)
    scorer: AnyScorer = DotProductSpec()
    memory_length: int = Field(default=0, ge=0)
    bias: bool = True

    def build(self, width: int) -> Attention:
        if width % self.num_heads:
            raise SpecError(f"width {width} cannot be split into {self.num_heads} heads")
        scorer = self.scorer.build(self.num_heads, width // self.num_heads)
        return Attention(width, self.num_heads, scorer, self.memory_length, self.bias)
