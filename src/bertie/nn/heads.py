"""Output heads: turn the states of the positions where something is predicted into logits."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.dropout import Dropout
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feed_forward import ACTIVATIONS, ActivationName
from bertie.nn.initial import initialized
from bertie.nn.native.cross_entropy import linear_cross_entropy
from bertie.nn.pooling import first_token, last_token, mean_token
from bertie.nn.products import Linear, linear
from bertie.spec import Spec


class Transform(nn.Module):
    """norm(activation(W x)): the layer between the last state and the output. The norm is optional."""

    def __init__(
        self, width: int, inner: int, activation: Callable[[Tensor], Tensor], norm_eps: float | None, bias: bool = True
    ):
        super().__init__()
        self.dense = Linear(width, inner, bias=bias)
        self.activation = activation
        self.norm = nn.Identity() if norm_eps is None else nn.LayerNorm(inner, eps=norm_eps, bias=bias)

    def forward(self, states: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(states)))


class TransformSpec(Spec):
    kind: Literal["transform"] = "transform"
    activation: ActivationName = "tanh"
    norm_eps: float | None = Field(default=None, gt=0)  # None: no norm
    bias: bool = True  # of the layer and of its norm

    def build(self, width: int) -> Transform:
        return Transform(width, width, ACTIVATIONS[self.activation], self.norm_eps, self.bias)


class VocabularyHead(nn.Module):
    """A transform to the tables' width, then one logit a vocabulary entry. Tied: the weight is the token table's, set
    by the model."""

    def __init__(self, transform: nn.Module, inner: int, size: int, tied: bool, bias: bool = True):
        super().__init__()
        self.weight: nn.Parameter  # [V, inner]
        self.bias: nn.Parameter | None  # [V]
        self.transform = transform
        self.register_parameter("weight", None if tied else nn.Parameter(torch.randn(size, inner) * inner**-0.5))
        self.register_parameter("bias", nn.Parameter(torch.zeros(size)) if bias else None)

    def forward(self, states: Tensor) -> Tensor:
        """[P, H] -> [P, V]"""
        return linear(self.transform(states), self.weight, self.bias)

    def loss(self, states: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """[P, H], [P] -> the cross entropy [P], and 1 where the target was the first choice [P]."""
        losses, correct, _ = self.loss_and_draws(states, targets)
        return losses, correct

    def loss_and_draws(
        self, states: Tensor, targets: Tensor, dice: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Also an id [P] drawn for each position by random numbers `dice` [P] from 0 to 1."""
        states = self.transform(states)
        bias = states.new_zeros(len(self.weight)) if self.bias is None else self.bias  # the kernel always adds one
        if (native := linear_cross_entropy(states, self.weight, bias, targets, dice)) is not None:
            return native
        logits = linear(states, self.weight, self.bias)
        correct = (logits.detach().argmax(-1) == targets).float()
        draws = targets[:0] if dice is None else drawn(logits.detach(), dice)
        return F.cross_entropy(logits, targets, reduction="none"), correct, draws


def drawn(logits: Tensor, dice: Tensor) -> Tensor:
    """One id a row: the first whose summed probability passes the die."""
    sums = logits.float().softmax(-1).cumsum(-1)
    return torch.searchsorted(sums, dice[:, None]).squeeze(-1).clamp(max=logits.shape[-1] - 1)


class VocabularyHeadSpec(Spec):
    kind: Literal["vocabulary"] = "vocabulary"
    transform: bool = True
    activation: ActivationName = "gelu"  # of the transform, like what follows
    norm_eps: float = Field(default=1e-12, gt=0)
    bias: bool = True
    output_bias: bool = True  # one number a vocabulary entry
    tied: bool = True

    def build(self, encoder: EncoderSpec, size: int, part: type[VocabularyHead] = VocabularyHead) -> VocabularyHead:
        inner = encoder.embeddings.table_width(encoder.width)
        if self.transform:
            activation = ACTIVATIONS[self.activation]
            transform: nn.Module = Transform(encoder.width, inner, activation, self.norm_eps, self.bias)
        elif inner == encoder.width:
            transform = nn.Identity()
        else:
            raise SpecError(f"tables of width {inner} need a transform from the encoder's width {encoder.width}")
        return initialized(part(transform, inner, size, self.tied, self.output_bias), encoder.initial_std)

    def ties(self, encoder: EncoderSpec, name: str = "weight") -> dict[str, str]:
        """Returns an objective's ties for a head whose weight has this name."""
        return {name: encoder.token_table} if self.tied else {}


class Detector(nn.Module):
    """One logit a token: was it put there by another model?"""

    def __init__(self, width: int, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.dense = Linear(width, width)
        self.activation = activation
        self.output = Linear(width, 1)

    def forward(self, states: Tensor) -> Tensor:
        """[T, H] -> [T]"""
        return self.output(self.activation(self.dense(states))).squeeze(-1)


class Classifier(nn.Module):
    """One logit a class."""

    def __init__(self, width: int, num_classes: int, transform: Transform | None = None):
        super().__init__()
        self.transform = transform
        self.output = Linear(width, num_classes)

    def forward(self, states: Tensor) -> Tensor:
        return self.output(states if self.transform is None else self.transform(states))


class SequenceHead(nn.Module):
    """One state a row, then one number a class. `transform` replaces the pooler where the encoder has none."""

    def __init__(
        self, output: nn.Linear, dropout: float, state: Callable[[Ragged], Tensor], transform: Transform | None
    ):
        super().__init__()
        self.state, self.transform, self.output = state, transform, output
        self.dropout = Dropout(dropout)

    def forward(self, encoder: Encoder, states: Ragged) -> Tensor:
        """[B, classes]"""
        pooled = self.state(states)
        if encoder.pooler is not None:
            pooled = encoder.pooler(pooled)
        pooled = self.dropout(pooled)
        if self.transform is not None:
            pooled = self.dropout(self.transform(pooled))
        return self.output(pooled)


RowState = Literal["first", "last", "mean"]
ROW_STATES: dict[RowState, Callable[[Ragged], Tensor]] = {
    "first": first_token,
    "last": last_token,
    "mean": mean_token,
}


class SequenceHeadSpec(Spec):
    kind: Literal["sequence"] = "sequence"
    tokens: RowState = "first"  # whose state speaks for the row
    dropout: float = Field(default=0.1, ge=0, lt=1)
    transform: TransformSpec | None = TransformSpec()  # left out where the encoder has a pooler

    def build(self, encoder: EncoderSpec, num_outputs: int) -> SequenceHead:
        transform = None
        if self.transform is not None and encoder.pooler is None:
            transform = self.transform.build(encoder.output_width)
        output = Linear(encoder.output_width, num_outputs)
        head = SequenceHead(output, self.dropout, ROW_STATES[self.tokens], transform)
        return initialized(head, encoder.initial_std)
