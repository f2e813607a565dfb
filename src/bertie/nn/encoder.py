"""The encoder: a batch enters, hidden states leave. Embeddings, a stack, perhaps a pooler or a top, nothing else.

Under a top all that lies below it is frozen: it has no dropout and learns nothing. So its features may also be computed
before, and come with the batch.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.nn.attention import Memory
from bertie.nn.embeddings import Embeddings, EmbeddingsSpec
from bertie.nn.feature_top import FEATURES, FeatureTop, FeatureTopSpec
from bertie.nn.initial import initialised
from bertie.nn.layout import Layout, Side
from bertie.nn.pooling import FirstDense, FirstDenseSpec, first_token
from bertie.nn.stack import Context, Stack
from bertie.nn.two_directions import AnyStack, TwoDirections
from bertie.nn.visibility import Full, Visibility
from bertie.spec import Spec


@dataclass(frozen=True)
class Encoded:
    states: Ragged  # [T, H] of the last layer
    layers: tuple[Tensor, ...] = ()  # embeddings first, then each layer; where asked for
    attention: tuple[Tensor, ...] = ()  # [B, N, Lq, Lk] of each layer; where asked for
    memory: tuple[Memory | None, ...] = ()

    def context(self) -> Context:
        """This sequence, for a decoder to look at."""
        return Context(self.states.values, Side(self.states.with_values(self.states.positions)))


class Encoder(nn.Module):
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
        """How the names of parameters begin that never learn."""
        return () if self.top is None else ("embeddings.", "stack.")

    def train(self, mode: bool = True) -> Self:
        """What is frozen stays as it is after training; nor is it walked through at every step."""
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
        memory: Sequence[Memory | None] | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        keep_attention: bool = False,
        wanted: Tensor | None = None,
    ) -> Encoded:
        """`wanted` [R]: the places, flat, rising, each once, of all tokens whose last states anybody will look at."""
        tokens = batch.ragged("tokens")
        if self.top is not None and FEATURES in batch:
            return Encoded(placed(self.top(batch.ragged(FEATURES)), tokens, wanted))
        side = Side.of(batch)
        observed: list[Tensor] | None = [] if keep_attention else None
        layout = Layout(side, side, visibility, observed)
        kept = keep_layers or self.top is not None
        with nullcontext() if self.top is None else torch.no_grad():
            stacked = self.stack(self.embeddings(batch), layout, memory, context, kept, wanted)
        states = tokens.with_values(stacked.states)
        if self.top is not None:
            states = self.top(tokens.with_values(self.top.pick(stacked.layers)))
        layers = stacked.layers if keep_layers else ()
        return Encoded(states, layers, tuple(observed or ()), stacked.memory)

    def features(self, batch: Batch) -> Ragged:
        """[T, F] what the top stands on."""
        assert self.top is not None
        side = Side.of(batch)
        with torch.no_grad():
            stacked = self.stack(self.embeddings(batch), Layout.within(side), keep_layers=True)
        return side.rows.with_values(self.top.pick(stacked.layers))

    def pool(self, states: Ragged) -> Tensor:
        """[B, H] one state a row, as the pooler sees it; the first token's own state where there is no pooler."""
        first = first_token(states)
        return first if self.pooler is None else self.pooler(first)


def placed(states: Ragged, tokens: Ragged, wanted: Tensor | None) -> Ragged:
    """States over features that may be those of the wanted tokens alone: all others are 0. Where no token is named, the
    rows are as they were stored: of all tokens, or one state that speaks for the row."""
    if wanted is None or len(states.values) == len(tokens.values):
        return states
    everywhere = states.values.new_zeros(len(tokens.values), states.values.shape[-1])
    return tokens.with_values(everywhere.index_copy(0, wanted, states.values))


class EncoderSpec(Spec):
    kind: Literal["encoder"] = "encoder"
    width: int = Field(ge=1)
    embeddings: EmbeddingsSpec
    stack: AnyStack
    pooler: FirstDenseSpec | None = None
    top: FeatureTopSpec | None = None
    initial_std: float = Field(default=0.02, gt=0)

    @property
    def output_width(self) -> int:
        """Of the states that heads see."""
        return self.width if self.top is None else self.top.output_width(self.width, self.stack.depth)

    def build(self) -> Encoder:
        pooler = None if self.pooler is None else self.pooler.build(self.width)
        top = None if self.top is None else self.top.build(self.width, self.stack.depth)
        encoder = Encoder(self.embeddings.build(self.width), self.stack.build(self.width), pooler, top)
        return initialised(encoder, self.initial_std)
