"""Counts parameters by part, with both of the field's usual sums.

Papers count either matrices, tables and norms alone, or those with biases and pooler; heads come on top.
"""

from dataclasses import dataclass

import torch

from bertie.models.model import Model
from bertie.models.recipe import Recipe

# The first pattern found in a parameter's name decides; biases of norms count as norms.
PARTS = (
    ("encoder.pooler.", "pooler"),
    ("encoder.top.", "top"),
    ("norm.", "layer norms"),
    (".bias", "biases"),
    ("encoder.embeddings.", "embeddings"),
    (".feed_forward.", "feed-forward"),
    (".part.ahead.", "LSTM"),
    (".part.back.", "LSTM"),
    (".mixer.", "attention"),
    (".cross.", "attention"),
)
BARE = ("embeddings", "attention", "LSTM", "layer norms", "feed-forward", "other")


@dataclass(frozen=True)
class ParameterCounts:
    parts: dict[str, int]  # of the encoder
    heads: dict[str, int]  # by objective
    decoder: int = 0

    @property
    def without_biases(self) -> int:
        """Tables, matrices and norms: no biases, no pooler, no heads."""
        return sum(count for part, count in self.parts.items() if part in BARE)

    @property
    def encoder(self) -> int:
        """All of the encoder, biases and pooler included."""
        return sum(self.parts.values())

    @property
    def total(self) -> int:
        return self.encoder + self.decoder + sum(self.heads.values())


def count_parameters(model: Model) -> ParameterCounts:
    """Counts tied weights once, where the encoder has them."""
    parts = dict.fromkeys((*BARE, "biases", "pooler", "top"), 0)
    heads: dict[str, int] = dict.fromkeys(model.heads, 0)
    decoder = 0
    for name, parameter in model.named_parameters():
        if name.startswith("heads."):
            heads[name.split(".")[1]] += parameter.numel()
        elif name.startswith("decoder."):
            decoder += parameter.numel()
        else:
            parts[next((part for pattern, part in PARTS if pattern in name), "other")] += parameter.numel()
    return ParameterCounts({part: count for part, count in parts.items() if count}, heads, decoder)


def count_recipe(recipe: Recipe) -> ParameterCounts:
    """Counts the parameters of a recipe without allocating any."""
    with torch.device("meta"):
        return count_parameters(Model(recipe))
