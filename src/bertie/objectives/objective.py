"""The protocol of an objective: corrupt a sample, build what is owned, measure the loss. One file each implements it.

An objective is a frozen spec, so that it is saved with the model; what learns is the module that `build` returns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bertie.batch import Batch, Sample
from bertie.nn.encoder import Encoder
from bertie.objectives.report import LossReport
from bertie.spec import Spec

FIRST = "first"  # the first token of each row
MARK = "only."  # begins the name of a field that says which objective alone a batch is for


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
    of_the_model: ClassVar[frozenset[str]] = frozenset()  # fields that `corrupt` does not read
    looks_at: ClassVar[tuple[str, ...] | None] = None
    """Fields that point at the tokens whose last states it looks at, or FIRST; None: at all, or at no last states."""
    compares: ClassVar[bool] = False
    """Whether its loss looks at all rows of a step together. Then it has `compared(owned, encoder, batch)`, which gives
    the `vectors` of rows and what belongs to them, and `loss_of(owned, compared)`."""

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Numpy; what to predict is added as named fields."""
        return sample

    def takes(self, batch: Batch) -> bool:
        """A batch is for all objectives, but where it is marked for one of them."""
        marks = [name for name in batch.fields if name.startswith(MARK)]
        return not marks or MARK + self.kind in marks

    def build(self, encoder: Any, vocabulary: Vocabulary) -> nn.Module:
        """What it owns: a head, a generator, a decoder, a teacher. `encoder` is the encoder's spec."""
        raise NotImplementedError

    def ties(self, encoder: Any) -> Mapping[str, str]:
        """Parameters of the owned module that are the encoder's own: owned name -> encoder name."""
        return {}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        raise NotImplementedError

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """[N, K] each: the log-probabilities of the K values that each of N predictions could have; no target is read.
        Left out where predictions are no choice."""
        raise NotImplementedError


def mark(batch: Batch, objective: Objective) -> Batch:
    """The batch, for this objective alone."""
    return batch.with_fields({MARK + objective.kind: torch.ones(1)})


def fields_looked_at(objectives: Iterable[Objective]) -> tuple[str, ...] | None:
    """By any of them; None where one looks at all tokens."""
    names: list[str] = []
    for objective in objectives:
        if objective.looks_at is None:
            return None
        names += objective.looks_at
    return tuple(dict.fromkeys(names)) or None


def places_in(names: Iterable[str], batch: Batch) -> Tensor:
    """[R] the places, flat and each once, that these fields point at."""
    tokens = batch.ragged("tokens")
    firsts = tokens.starts[tokens.lengths > 0]
    return torch.cat([firsts if name == FIRST else batch.tensor(name) for name in names]).unique()
