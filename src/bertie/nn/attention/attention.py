"""Turns query and key states into mixed states. Self, cross and two-stream attention are the caller's wiring."""

from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.attention.relative import RelativeSpec
from bertie.nn.attention.rotary import RotarySpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.layout import Layout
from bertie.nn.memory import LayerMemory
from bertie.nn.products import Linear, linear
from bertie.spec import LARGEST, Spec

AnyScorer = Annotated[DotProductSpec | RotarySpec | RelativeSpec, Field(discriminator="kind")]
STATES = "states"  # in the memory: the last key states of each row


class Mixer(Protocol):
    """Query and key states are separate arguments: cross attention and two streams are then wiring of the stack."""

    def __call__(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: LayerMemory | None = None
    ) -> tuple[Tensor, LayerMemory | None]: ...


class Projection(NamedTuple):
    """The weights of the queries, the keys or the values of all heads."""

    weight: Tensor  # [N * D, H]
    bias: Tensor | None  # [N * D]


class Attention(nn.Module):
    """Multi-head attention. With `memory_length` the last key states of each row are kept for the next call.

    The heads together may be narrower or wider than the states, as after pruning.
    """

    def __init__(
        self, width: int, num_heads: int, head_width: int, scorer: nn.Module, memory_length: int = 0, bias: bool = True
    ):
        super().__init__()
        self.num_heads, self.head_width, self.memory_length = num_heads, head_width, memory_length
        inner = num_heads * head_width
        self.project = Linear(width, 3 * inner, bias=bias)  # queries, keys and values, one below the other
        self.scorer = scorer
        self.output = Linear(inner, width, bias=bias)

    @property
    def query(self) -> Projection:
        return self._projection(0, 1)

    @property
    def key(self) -> Projection:
        return self._projection(1, 2)

    @property
    def value(self) -> Projection:
        return self._projection(2, 3)

    def _projection(self, first: int, end: int) -> Projection:
        inner, weight, bias = self.num_heads * self.head_width, self.project.weight, self.project.bias
        rows = slice(first * inner, end * inner)
        return Projection(weight[rows], None if bias is None else bias[rows])

    def forward(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: LayerMemory | None = None
    ) -> tuple[Tensor, LayerMemory | None]:
        same = query_states is key_states and memory is None
        if memory is not None:
            remembered = memory[STATES]
            assert isinstance(remembered, Ragged)
            key_states = remembered.join(layout.key.rows.with_values(key_states)).values
            layout = layout.behind(remembered)
        kept = None
        if self.memory_length:
            kept = {STATES: layout.key.rows.with_values(key_states.detach()).last(self.memory_length)}
        if same:
            query, key, value = self.project(query_states).unflatten(-1, (3, self.num_heads, -1)).unbind(1)
        else:
            query = linear(query_states, *self.query).unflatten(-1, (self.num_heads, -1))
            both = linear(key_states, *self._projection(1, 3)).unflatten(-1, (2, self.num_heads, -1))
            key, value = both.unbind(1)
        mixed = self.scorer(query, key, value, layout)  # [Tq, N, D]
        return self.output(mixed.flatten(1)), kept


class AttentionSpec(Spec):
    kind: Literal["attention"] = "attention"
    num_heads: int = Field(ge=1, le=LARGEST)
    head_width: int | None = Field(default=None, ge=1, le=LARGEST)  # None: the states' width, divided among the heads
    scorer: AnyScorer = DotProductSpec()
    memory_length: int = Field(default=0, ge=0)
    bias: bool = True

    def width_of_head(self, width: int) -> int:
        """In a layer whose states have this width."""
        if self.head_width is None and width % self.num_heads:
            raise SpecError(f"width {width} cannot be split into {self.num_heads} heads")
        return self.head_width or width // self.num_heads

    def build(self, width: int) -> Attention:
        head_width = self.width_of_head(width)
        scorer = self.scorer.build(self.num_heads, head_width)
        return Attention(width, self.num_heads, head_width, scorer, self.memory_length, self.bias)
