"""The top over a frozen encoder: turns the states of its layers into the token states that task heads see.

Which layers make a token's features is a choice. They are computed once and may be stored. Only what reads them learns:
the head, or LSTMs that read rows in both directions. Devlin et al., 2019, section 5.3; the weighted sum is that of
Peters et al., 2018, equation 1.

Axes: T tokens, H width of a layer, F of the features, K layers, the embeddings among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.layout import Layout, Side
from bertie.nn.lstm import LSTM, LSTMSpec
from bertie.spec import DEEPEST, LARGEST, Spec

FEATURES = "features"  # the field of a batch that holds them, where they were computed before

LayerChoice = Literal["last", "second-last", "sum4", "concat4", "weighted"]


@dataclass(frozen=True)
class LayerPick:
    """`pick` gets the embeddings, then every layer's states, and gives the features [T, F]."""

    pick: Callable[[Sequence[Tensor]], Tensor]
    least_depth: int  # of the encoder
    num_layers: Callable[[int], int] = lambda depth: 1  # that lie side by side in the features, by the encoder's depth


LAYER_CHOICES: dict[LayerChoice, LayerPick] = {
    "last": LayerPick(lambda layers: layers[-1], 1),
    "second-last": LayerPick(lambda layers: layers[-2], 2),
    "sum4": LayerPick(lambda layers: torch.stack(tuple(layers[-4:])).sum(0), 4),
    "concat4": LayerPick(lambda layers: torch.cat(tuple(layers[-4:]), -1), 4, lambda depth: 4),
    "weighted": LayerPick(lambda layers: torch.cat(tuple(layers), -1), 1, lambda depth: depth + 1),
}


class ScalarMix(nn.Module):
    """A sum of layers under weights that are learned: the same for all tokens, together 1, then scaled."""

    def __init__(self, num_layers: int):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(num_layers))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, features: Tensor) -> Tensor:
        """[T, K * H] -> [T, H]"""
        layers = features.unflatten(-1, (len(self.weights), -1))
        return self.scale * torch.matmul(self.weights.softmax(0), layers)


class LSTMLayers(nn.Module):
    """One reads what the other has read."""

    def __init__(self, layers: Sequence[LSTM]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, states: Ragged) -> Ragged:
        layout = Layout.within(Side(states.numbered()))
        values = states.values
        for layer in self.layers:
            values, _ = layer(values, values, layout)
        return states.with_values(values)


class FeatureTop(nn.Module):
    def __init__(self, layers: LayerChoice, mix: ScalarMix | None, lstm: LSTMLayers | None):
        super().__init__()
        self.layers, self.mix, self.lstm = layers, mix, lstm

    @property
    def reads_rows(self) -> bool:
        """Whether a token's state depends on the features of its whole row."""
        return self.lstm is not None

    def pick(self, layers: Sequence[Tensor]) -> Tensor:
        """Embeddings first, then every layer's states -> [T, F]"""
        return LAYER_CHOICES[self.layers].pick(layers)

    def forward(self, features: Ragged) -> Ragged:
        states = features if self.mix is None else features.with_values(self.mix(features.values))
        return states if self.lstm is None else self.lstm(states)


class LSTMLayersSpec(Spec):
    kind: Literal["lstm-layers"] = "lstm-layers"
    depth: int = Field(default=2, ge=1, le=DEEPEST)
    width: int | None = Field(default=None, ge=2, le=LARGEST)  # of both directions together; None: the encoder's

    def build(self, entering: int, width: int) -> LSTMLayers:
        """`width` is the encoder's, `entering` that of the features."""
        own = self.width or width
        return LSTMLayers([LSTMSpec().build(own, own if layer else entering) for layer in range(self.depth)])


class FeatureTopSpec(Spec):
    """An encoder that has it is frozen."""

    kind: Literal["features"] = "features"
    layers: LayerChoice = "last"
    lstm: LSTMLayersSpec | None = None  # None: heads read the features themselves

    @property
    def chosen(self) -> LayerPick:
        return LAYER_CHOICES[self.layers]

    def feature_width(self, width: int, depth: int) -> int:
        """F, over an encoder of this width and depth: the numbers to store for each token."""
        return width * self.chosen.num_layers(depth)

    def mixed_width(self, width: int, depth: int) -> int:
        return width if self.layers == "weighted" else self.feature_width(width, depth)

    def output_width(self, width: int, depth: int) -> int:
        """Of the states that heads see."""
        return self.mixed_width(width, depth) if self.lstm is None else self.lstm.width or width

    def build(self, width: int, depth: int) -> FeatureTop:
        if depth < self.chosen.least_depth:
            what = f"{self.layers} needs {self.chosen.least_depth} layers, this model has {depth}"
            raise SpecError(what, hint="last and weighted work with any model")
        mix = ScalarMix(depth + 1) if self.layers == "weighted" else None
        lstm = None if self.lstm is None else self.lstm.build(self.mixed_width(width, depth), width)
        return FeatureTop(self.layers, mix, lstm)
