"""The encoder: a batch enters, hidden states leave. Embeddings, a stack and perhaps a pooler, nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.nn.attention import Memory
from bertie.nn.embeddings import Embeddings, EmbeddingsSpec
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
    def __init__(self, embeddings: Embeddings, stack: Stack | TwoDirections, pooler: FirstDense | None = None):
        super().__init__()
        self.embeddings, self.stack, self.pooler = embeddings, stack, pooler

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
        """`wanted` [R]: the places, flat and each once, of all tokens whose last states anybody will look at."""
        tokens = batch.ragged("tokens")
        side = Side.of(batch)
        observed: list[Tensor] | None = [] if keep_attention else None
        layout = Layout(side, side, visibility, observed)
        stacked = self.stack(self.embeddings(batch), layout, memory, context, keep_layers, wanted)
        return Encoded(tokens.with_values(stacked.states), stacked.layers, tuple(observed or ()), stacked.memory)

    def pool(self, states: Ragged) -> Tensor:
        """[B, H] one state a row, as the pooler sees it; the first token's own state where there is no pooler."""
        first = first_token(states)
        return first if self.pooler is None else self.pooler(first)


class EncoderSpec(Spec):
    kind: Literal["encoder"] = "encoder"
    width: int = Field(ge=1)
    embeddings: EmbeddingsSpec
    stack: AnyStack
    pooler: FirstDenseSpec | None = None
    initial_std: float = Field(default=0.02, gt=0)

    def build(self) -> Encoder:
        pooler = None if self.pooler is None else self.pooler.build(self.width)
        encoder = Encoder(self.embeddings.build(self.width), self.stack.build(self.width), pooler)
        return initialised(encoder, self.initial_std)
