"""Block and stack: turn hidden states into those of every layer.

A block is a mixer, optionally a mixer that attends to another sequence, and a feed-forward, each with its residual.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.feed_forward import AnyFeedForward
from bertie.nn.layout import Layout, Side
from bertie.nn.lstm import LSTMSpec
from bertie.nn.memory import LayerMemory, Memory
from bertie.nn.residual import AnyResidual, PostNorm, PostNormSpec, PreNorm
from bertie.nn.visibility import AnyVisibility, Full, Visibility
from bertie.spec import DEEPEST, Spec


@dataclass(frozen=True)
class Context:
    """Another sequence to attend to: an encoder's output, for a decoder."""

    states: Tensor  # [Tk, H]
    side: Side


class Joined(nn.Module):
    """A sub-layer, and the residual layout that joins it to the stream."""

    def __init__(self, part: nn.Module, residual: PostNorm | PreNorm):
        super().__init__()
        self.part, self.residual = part, residual


class Block(nn.Module):
    """Query and key states are separate: equal for self-attention, different for two streams."""

    def __init__(self, mixer: Joined, feed_forward: Joined | None, cross: Joined | None = None):
        super().__init__()
        self.mixer, self.cross, self.feed_forward = mixer, cross, feed_forward

    def forward(
        self,
        query_states: Tensor,
        key_states: Tensor,
        layout: Layout,
        memory: LayerMemory | None = None,
        context: Context | None = None,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, LayerMemory | None]:
        """Returns only the states at `positions`, where some are given: others need no feed-forward."""
        residual = self.mixer.residual
        queries = residual.enter(query_states)
        keys = queries if key_states is query_states else residual.enter(key_states)
        mixed, memory = self.mixer.part(queries, keys, layout, memory)
        states = residual.leave(query_states, mixed)
        if (self.cross is None) != (context is None):
            missing = "no other sequence was given" if context is None else "the block has no cross attention"
            raise ValueError(f"cross attention and another sequence need each other: {missing}")
        if self.cross is not None and context is not None:
            residual = self.cross.residual
            seen, _ = self.cross.part(residual.enter(states), context.states, layout.across(context.side))
            states = residual.leave(states, seen)
        if positions is not None:
            states = states.index_select(0, positions)
        if self.feed_forward is not None:
            residual = self.feed_forward.residual
            states = residual.leave(states, self.feed_forward.part(residual.enter(states)))
        return states, memory


AnyMixer = Annotated[AttentionSpec | LSTMSpec, Field(discriminator="kind")]


class BlockSpec(Spec):
    kind: Literal["block"] = "block"
    mixer: AnyMixer
    cross: AttentionSpec | None = None
    feed_forward: AnyFeedForward | None = None
    residual: AnyResidual = PostNormSpec()

    def build(self, width: int) -> Block:
        mixer = Joined(self.mixer.build(width), self.residual.build(width))
        feed_forward, cross = (
            None if spec is None else Joined(spec.build(width), self.residual.build(width))
            for spec in (self.feed_forward, self.cross)
        )
        return Block(mixer, feed_forward, cross)


@dataclass(frozen=True)
class Stacked:
    states: Tensor  # [T, H]
    layers: tuple[Tensor, ...]  # the input, then the output of every layer; empty without `keep_layers`
    memory: Memory | None  # for the next call


class Layer(NamedTuple):
    """One block of a layer, and what its tokens see."""

    block: nn.Module
    visibility: Visibility


class LayerStack(nn.Module):
    """What every kind of stack has: layers that can be counted, frozen and described one by one."""

    @abstractmethod
    def layers(self) -> Sequence[Sequence[Layer]]:
        """First layer first; the blocks of one layer work side by side. What belongs to no layer, such as a final
        norm, counts as part of the last."""


class Stack(LayerStack):
    def __init__(self, blocks: Sequence[Block], visibilities: Sequence[Visibility], final_norm: nn.Module):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.visibilities = tuple(visibilities)
        self.final_norm = final_norm

    def layers(self) -> list[tuple[Layer, ...]]:
        return [(Layer(*pair),) for pair in zip(self.blocks, self.visibilities, strict=True)]

    def forward(
        self,
        states: Tensor,
        layout: Layout,
        memory: Memory | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        positions: Tensor | None = None,
    ) -> Stacked:
        """`positions` [R] are the tokens whose last states are read, each once: the last states of others are zero, and
        the last block does less. With `keep_layers` all states are computed."""
        layouts = {visibility: layout.seen_by(visibility) for visibility in set(self.visibilities)}
        layers = [states]
        kept: list[LayerMemory | None] = []
        num_tokens, last = len(states), len(self.blocks) - 1
        if keep_layers or not self.blocks:
            positions = None
        for number, (block, visibility) in enumerate(zip(self.blocks, self.visibilities, strict=True)):
            read = positions if number == last else None
            remembered = None if memory is None else memory.layers[number]
            states, new = block(states, states, layouts[visibility], remembered, context, read)
            kept.append(new)
            if keep_layers:
                layers.append(states)
        states = self.final_norm(states)
        if positions is not None:
            states = states.new_zeros(num_tokens, states.shape[-1]).index_copy(0, positions, states)
        if keep_layers:
            layers[-1] = states
        remembers = any(layer is not None for layer in kept)
        return Stacked(states, tuple(layers) if keep_layers else (), Memory(tuple(kept)) if remembers else None)


Shared = Literal["mixer", "feed-forward"]
ATTRIBUTES: dict[Shared, str] = {"mixer": "mixer", "feed-forward": "feed_forward"}


class StackSpec(Spec):
    """Layers take their block and their visibility from two lists in turn (local, local, global, ...); a single one is
    for all layers."""

    kind: Literal["stack"] = "stack"
    depth: int = Field(ge=0, le=DEEPEST)
    block: BlockSpec
    next_blocks: tuple[BlockSpec, ...] = ()  # that follow `block` in turn, where layers differ
    visibility: tuple[AnyVisibility, ...] = Field(default=(Full(),), min_length=1)
    shared: tuple[Shared, ...] = ()  # parts that all layers of a group have in common
    groups: int = Field(default=1, ge=1)
    input_normed: bool = False  # the input is normed already: the first mixer takes it as it is

    @field_validator("visibility", mode="before")
    @classmethod
    def _one_is_a_cycle(cls, value: Any) -> Any:
        return value if isinstance(value, list | tuple) else (value,)

    @model_validator(mode="after")
    def _groups_are_even(self) -> "StackSpec":
        if self.groups > 1 and (not self.shared or self.depth % self.groups):
            raise ValueError(
                f"{self.depth} layers that share {self.shared or 'nothing'} cannot be divided into {self.groups} groups"
            )
        return self

    def layer_spec(self, layer: int) -> BlockSpec:
        return (self.block, *self.next_blocks)[layer % (1 + len(self.next_blocks))]

    def visibility_of(self, layer: int) -> Visibility:
        return self.visibility[layer % len(self.visibility)]

    def owner(self, layer: int) -> int:
        """The layer whose parts this layer uses, where it shares them."""
        size = self.depth // self.groups
        return layer // size * size

    def stacks(self, width: int) -> "dict[str, tuple[StackSpec, int]]":
        """The stacks that it consists of, by the name of the module, with their widths. None: it is one itself."""
        return {}

    def build(self, width: int) -> Stack:
        blocks = [self.layer_spec(layer).build(width) for layer in range(self.depth)]
        for layer, block in enumerate(blocks):
            for part in self.shared:
                setattr(block, ATTRIBUTES[part], getattr(blocks[self.owner(layer)], ATTRIBUTES[part]))
        if self.input_normed and blocks:
            blocks[0].mixer.residual.norm = nn.Identity()
        final_norm = self.block.residual.build_final(width) if self.depth else nn.Identity()
        return Stack(blocks, [self.visibility_of(layer) for layer in range(self.depth)], final_norm)
