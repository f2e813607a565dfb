"""Turns a batch into hidden states: embeddings, a stack, perhaps a pooler or a top, nothing else.

Under a top everything is frozen: it has no dropout and learns nothing. So its features may also be computed before, and
come with the batch. A decoder is an encoder whose layers also attend to the states of another one.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.errors import SpecError
from bertie.nn.embeddings import AnyEmbeddings, Embeddings
from bertie.nn.feature_top import FEATURES, FeatureTop, FeatureTopSpec
from bertie.nn.initial import initialized
from bertie.nn.layout import Layout, Side
from bertie.nn.memory import Memory
from bertie.nn.pooling import FirstDense, FirstDenseSpec, first_token
from bertie.nn.stack import Context, Stack
from bertie.nn.two_directions import AnyStack, TwoDirections
from bertie.nn.visibility import Full, Visibility
from bertie.spec import LARGEST, Spec


@dataclass(frozen=True)
class Encoded:
    states: Ragged  # [T, H] of the last layer
    layers: tuple[Tensor, ...] = ()  # embeddings first, then each layer; with `keep_layers`
    attention: tuple[Tensor, ...] = ()  # [B, N, Lq, Lk] of each layer; with `keep_attention`
    memory: Memory | None = None  # of rows, for the segments that continue them

    def context(self) -> Context:
        """Returns this sequence as the context of a decoder."""
        return Context(self.states.values, Side(self.states.numbered()))


class Encoder(nn.Module):
    decoder: "Encoder | None" = None
    """The decoder beside it in a model, for objectives to use; no part of the encoder."""

    def __init__(
        self,
        embeddings: Embeddings,
        stack: Stack | TwoDirections,
        pooler: FirstDense | None = None,
        top: FeatureTop | None = None,
    ):
        super().__init__()
        self.embeddings, self.stack, self.pooler, self.top = embeddings, stack, pooler, top
        if top is not None:
            embeddings.requires_grad_(False).eval()
            stack.requires_grad_(False).eval()

    @property
    def frozen(self) -> tuple[str, ...]:
        """The prefixes of parameters that never learn."""
        return () if self.top is None else ("embeddings.", "stack.")

    def train(self, mode: bool = True) -> Self:
        """Leaves what is frozen in evaluation mode; nor is it walked through at every step."""
        if self.top is None:
            return super().train(mode)
        self.training = mode
        self.top.train(mode)
        return self

    def forward(
        self,
        batch: Batch,
        *,
        visibility: Visibility = Full(),  # noqa: B008 - a frozen value
        memory: Memory | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        keep_attention: bool = False,
        positions: Tensor | None = None,
    ) -> Encoded:
        """Encodes a batch. `positions` [R]: flat, sorted, unique positions of the tokens whose last states are read."""
        tokens = batch.ragged("tokens")
        if self.top is not None and FEATURES in batch:
            return Encoded(placed(self.top(batch.ragged(FEATURES)), tokens, positions))
        side = Side.of(batch)
        observed: list[Tensor] | None = [] if keep_attention else None
        layout = Layout(side, side, visibility, observed)
        kept = keep_layers or self.top is not None
        with nullcontext() if self.top is None else torch.no_grad():
            stacked = self.stack(self.embeddings(batch), layout, memory, context, kept, positions)
        states = tokens.with_values(stacked.states)
        if self.top is not None:
            states = self.top(tokens.with_values(self.top.pick(stacked.layers)))
        layers = stacked.layers if keep_layers else ()
        return Encoded(states, layers, tuple(observed or ()), stacked.memory)

    def features(self, batch: Batch) -> Ragged:
        """Returns [T, F], the input of the top."""
        assert self.top is not None
        side = Side.of(batch)
        with torch.no_grad():
            stacked = self.stack(self.embeddings(batch), Layout.within(side), keep_layers=True)
        return side.rows.with_values(self.top.pick(stacked.layers))

    def pool(self, states: Ragged) -> Tensor:
        """Returns [B, H], one state a row: the pooler's, or the first token's own where there is no pooler."""
        first = first_token(states)
        return first if self.pooler is None else self.pooler(first)


def placed(states: Ragged, tokens: Ragged, positions: Tensor | None) -> Ragged:
    """Spreads states over all tokens where the features are those at `positions` alone: the others are 0. Without
    `positions` the rows stay as they were stored: of all tokens, or one state for the row."""
    if positions is None or len(states.values) == len(tokens.values):
        return states
    everywhere = states.values.new_zeros(len(tokens.values), states.values.shape[-1])
    return tokens.with_values(everywhere.index_copy(0, positions, states.values))


class EncoderSpec(Spec):
    kind: Literal["encoder"] = "encoder"
    width: int = Field(ge=1, le=LARGEST)
    embeddings: AnyEmbeddings
    stack: AnyStack
    pooler: FirstDenseSpec | None = None
    top: FeatureTopSpec | None = None
    initial_std: float = Field(default=0.02, gt=0)

    @property
    def output_width(self) -> int:
        """The width of the states that heads see."""
        return self.width if self.top is None else self.top.output_width(self.width, self.stack.depth)

    @property
    def token_table(self) -> str:
        """The name of the parameter with one row a token, to which heads are tied."""
        if self.embeddings.token_table is None:
            what = f"embeddings of the kind {self.embeddings.kind!r} have no table of tokens to tie weights to"
            raise SpecError(what, hint="set `tied=False`")
        return f"embeddings.{self.embeddings.token_table}"

    def build(self) -> Encoder:
        pooler = None if self.pooler is None else self.pooler.build(self.width)
        top = None if self.top is None else self.top.build(self.width, self.stack.depth)
        encoder = Encoder(self.embeddings.build(self.width), self.stack.build(self.width), pooler, top)
        return initialized(encoder, self.initial_std)


class DecoderSpec(EncoderSpec):
    """An encoder whose blocks have cross attention: its forward pass takes another encoder's states as `context`. What
    its tokens see of each other is its stack's visibility, usually Causal()."""

    kind: Literal["decoder"] = "decoder"  # type: ignore[assignment]
    tied: bool = True  # its table of tokens is the encoder's own

    @model_validator(mode="after")
    def _attends_to_the_encoder(self) -> "DecoderSpec":
        blocks = (
            [self.stack.layer_spec(layer) for layer in range(self.stack.depth)] if self.stack.kind == "stack" else []
        )
        if not blocks or any(block.cross is None for block in blocks):
            raise ValueError("a decoder is a stack of blocks that all have cross attention (`cross`)")
        return self

    def check(self, encoder: EncoderSpec) -> None:
        """Raises ValueError where it does not fit an encoder."""
        if self.width != encoder.output_width:
            raise ValueError(f"the decoder is {self.width} wide, the encoder's states {encoder.output_width}")
        sizes = [(one.embeddings.vocab_size, one.embeddings.table_width(one.width)) for one in (self, encoder)]
        if self.tied and sizes[0] != sizes[1]:
            raise ValueError(f"encoder and decoder cannot share a table of tokens: {sizes[1]} and {sizes[0]}")

    def ties(self, encoder: EncoderSpec) -> dict[str, str]:
        """Names its parameters that are the encoder's own: own name -> encoder name."""
        return {self.token_table: encoder.token_table} if self.tied else {}
