"""Block and stack: hidden states enter, hidden states of every layer leave.

A block is a mixer, perhaps a mixer that looks at another sequence, and a feed-forward, each with its residual layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from bertie.nn.attention import AttentionSpec, Memory
from bertie.nn.feed_forward import AnyFeedForward
from bertie.nn.layout import Layout, Side
from bertie.nn.lstm import LSTMSpec
from bertie.nn.residual import AnyResidual, PostNorm, PostNormSpec, PreNorm
from bertie.nn.visibility import AnyVisibility, Full, Visibility
from bertie.spec import Spec


@dataclass(frozen=True)
class Context:
    """Another sequence to look at: an encoder's output for a decoder."""

    states: Tensor  # [Tk, H]
    side: Side


class Joined(nn.Module):
    """A sub-layer and the residual layout that joins it to the stream."""

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
        memory: Memory | None = None,
        context: Context | None = None,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Memory | None]:
        """Only the states of the wanted tokens leave, where some are named: others need no feed-forward."""
        residual = self.mixer.residual
        entered = residual.enter(query_states)
        keys = entered if key_states is query_states else residual.enter(key_states)
        mixed, memory = self.mixer.part(entered, keys, layout, memory)
        states = residual.leave(query_states, mixed)
        if (self.cross is None) != (context is None):
            missing = "no other sequence was given" if context is None else "the block cannot look at another sequence"
            raise ValueError(f"cross attention and the other sequence belong together: {missing}")
        if self.cross is not None and context is not None:
            residual = self.cross.residual
            seen, _ = self.cross.part(residual.enter(states), context.states, layout.across(context.side))
            states = residual.leave(states, seen)
        if wanted is not None:
            states = states.index_select(0, wanted)
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
        def joined(spec: AttentionSpec | AnyFeedForward | None) -> Joined | None:
            return None if spec is None else Joined(spec.build(width), self.residual.build(width))

        mixer = Joined(self.mixer.build(width), self.residual.build(width))
        return Block(mixer, joined(self.feed_forward), joined(self.cross))


@dataclass(frozen=True)
class Stacked:
    states: Tensor  # [T, H]
    layers: tuple[Tensor, ...]  # what entered, then every layer's output; empty unless asked for
    memory: tuple[Memory | None, ...]  # one a layer, for the next call


class Stack(nn.Module):
    def __init__(self, blocks: Sequence[Block], visibilities: Sequence[Visibility], final_norm: nn.Module):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.visibilities = tuple(visibilities)
        self.final_norm = final_norm

    def forward(
        self,
        states: Tensor,
        layout: Layout,
        memory: Sequence[Memory | None] | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        wanted: Tensor | None = None,
    ) -> Stacked:
        """`wanted` [R] are places, each once: other tokens' last states are then zero, and the last block does less.
        Where layers are kept, all are whole."""
        layouts = {visibility: layout.seen_by(visibility) for visibility in set(self.visibilities)}
        layers, kept = [states], []
        remembered = memory or [None] * len(self.blocks)
        num_tokens, last = len(states), len(self.blocks) - 1
        if keep_layers or not self.blocks:
            wanted = None
        for number, (block, visibility) in enumerate(zip(self.blocks, self.visibilities, strict=True)):
            asked = wanted if number == last else None
            states, new = block(states, states, layouts[visibility], remembered[number], context, asked)
            kept.append(new)
            if keep_layers:
                layers.append(states)
        states = self.final_norm(states)
        if wanted is not None:
            states = states.new_zeros(num_tokens, states.shape[-1]).index_copy(0, wanted, states)
        if keep_layers:
            layers[-1] = states
        return Stacked(states, tuple(layers) if keep_layers else (), tuple(kept))


Shared = Literal["mixer", "feed-forward"]
ATTRIBUTES: dict[Shared, str] = {"mixer": "mixer", "feed-forward": "feed_forward"}


class StackSpec(Spec):
    """Layers take block and visibility from two lists in turn (local, local, global, ...); one alone holds for all."""

    kind: Literal["stack"] = "stack"
    depth: int = Field(ge=0)
    block: BlockSpec
    others: tuple[BlockSpec, ...] = ()  # that follow the first in turn, where layers differ
    visibility: tuple[AnyVisibility, ...] = Field(default=(Full(),), min_length=1)
    shared: tuple[Shared, ...] = ()  # parts that all layers of a group have in common
    groups: int = Field(default=1, ge=1)
    normed: bool = False  # what enters is normed already: the first mixer takes it as it is

    @field_validator("visibility", mode="before")
    @classmethod
    def _one_is_a_cycle(cls, value: Any) -> Any:
        return value if isinstance(value, list | tuple) else (value,)

    @model_validator(mode="after")
    def _groups_are_even(self) -> "StackSpec":
        if self.groups > 1 and (not self.shared or self.depth % self.groups):
            raise ValueError(
                f"{self.depth} layers that share {self.shared or 'nothing'} do not make {self.groups} groups"
            )
        return self

    def block_of(self, layer: int) -> BlockSpec:
        return (self.block, *self.others)[layer % (1 + len(self.others))]

    def owner(self, layer: int) -> int:
        """The layer whose parts a layer has, where it shares them."""
        size = self.depth // self.groups
        return layer // size * size

    def build(self, width: int) -> Stack:
        visibilities = [self.visibility[layer % len(self.visibility)] for layer in range(self.depth)]
        blocks = [self.block_of(layer).build(width) for layer in range(self.depth)]
        for layer, block in enumerate(blocks):
            for part in self.shared:
                setattr(block, ATTRIBUTES[part], getattr(blocks[self.owner(layer)], ATTRIBUTES[part]))
        if self.normed and blocks:
            blocks[0].mixer.residual.norm = nn.Identity()
        return Stack(blocks, visibilities, self.block.residual.build_final(width) if self.depth else nn.Identity())
