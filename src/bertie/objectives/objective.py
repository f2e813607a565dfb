"""The protocol of an objective: corrupt a sample, build what is owned, measure the loss. One file each implements it.

An objective is a frozen spec, so that it is saved with the model; what learns is the module that `build` returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from bertie.batch import Batch, Sample
from bertie.nn.encoder import Encoder
from bertie.objectives.report import LossReport
from bertie.spec import Spec


@dataclass(frozen=True)
class Vocabulary:
    """What corruption and heads must know of a tokenizer."""

    size: int
    mask: int | None = None
    special: frozenset[int] = frozenset()  # ids that are never predicted


class Objective(Spec):
    """`kind` names it in specs, weights and metrics. `samples` is the shape of sample that data/ builds for it."""

    kind: Any
    samples: Any

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Numpy; what to predict is added as named fields."""
        return sample

    def build(self, encoder: Any, vocabulary: Vocabulary) -> nn.Module:
        """What it owns: a head, a generator, a decoder, a teacher. `encoder` is the encoder's spec."""
        raise NotImplementedError

    def ties(self, encoder: Any) -> Mapping[str, str]:
        """Parameters of the owned module that are the encoder's own: owned name -> encoder name."""
        return {}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        raise NotImplementedError
