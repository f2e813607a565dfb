"""Defines the protocol of an objective: corrupt a sample, build what is owned, compute the loss. One file each.

An objective is a frozen spec, so that it is saved with the model; what learns is the module that `build` returns.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer
from torch import Tensor, nn

from bertie.batch import Batch, Ragged, Sample
from bertie.data.shapes import SampleShape
from bertie.devices import copied
from bertie.nn.encoder import Encoder
from bertie.objectives.loss_report import LossReport
from bertie.spec import Spec

FIRST = "first"  # the first token of each row


@dataclass(frozen=True)
class Vocabulary:
    """What corruption and heads need to know of a tokenizer."""

    size: int
    mask: int | None = None
    special: frozenset[int] = frozenset()  # ids that are never predicted
    frequencies: np.ndarray | None = field(default=None, compare=False)  # [V] counts by id, where a corpus is known


class Prediction(NamedTuple):
    """A loss that is the cost of predicting tokens, so that predicting by frequency alone is its baseline."""

    loss: str  # its name in the report
    targets: str  # the field of tokens that are predicted


class Objective(Spec):
    """`kind` identifies the class in specs; `name`, by default the kind, is the name of its head in a model, so that a
    model may have several of one kind. `samples` is the shape of sample that data/ builds for it."""

    kind: Any
    name: str = Field(default_factory=lambda fields: fields["kind"])
    samples: SampleShape | None
    head_fields: ClassVar[frozenset[str]] = frozenset()  # fields that `corrupt` does not read
    read_positions: ClassVar[tuple[str, ...] | None] = None
    """Fields that point at the tokens whose last states it reads, or FIRST; None: all tokens, or no last states."""
    prediction: ClassVar[Prediction | None] = None
    contrastive: ClassVar[bool] = False
    """Whether its loss compares all rows of a step. Then it has `embed_rows(owned, encoder, batch)`, which gives the
    `vectors` of rows and what belongs to them, and `contrastive_loss(owned, rows)`."""

    @field_validator("name")
    @classmethod
    def _names_a_module(cls, name: str) -> str:
        if not re.fullmatch(r"[\w-]+", name) or hasattr(nn.ModuleDict, name):
            raise ValueError(f"{name!r} cannot be the name of a head: use letters, digits, `-` and `_`")
        return name

    @model_serializer(mode="wrap")
    def _without_default_name(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        return fields if self.name != self.kind else {key: value for key, value in fields.items() if key != "name"}

    @property
    def prefix(self) -> str:
        """Comes before the names of its losses and metrics: nothing, unless the objective has a name of its own."""
        return "" if self.name == self.kind else f"{self.name}."

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Adds what to predict as named fields, in numpy."""
        return sample

    def takes(self, batch: Batch) -> bool:
        """Whether a batch is for this objective."""
        return batch.only is None or batch.only == self.name

    def build(self, encoder: Any, vocabulary: Vocabulary) -> nn.Module:
        """Builds what it owns: a head, a generator, a teacher. `encoder` is the encoder's spec."""
        raise NotImplementedError

    def ties(self, encoder: Any) -> Mapping[str, str]:
        """Names parameters of the owned module that are the encoder's own: owned name -> encoder name."""
        return {}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        """Computes losses and metrics. `encoder.decoder` is the model's decoder, where the recipe has one."""
        raise NotImplementedError

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """Returns [N, K] each: log-probabilities of the K values that each of N predictions could have, without reading
        a target. Left out where predictions are no choice."""
        raise NotImplementedError


def fields_read(objectives: Iterable[Objective]) -> tuple[str, ...] | None:
    """Returns the `read_positions` of all of them; None where one reads all tokens."""
    names: list[str] = []
    for objective in objectives:
        if objective.read_positions is None:
            return None
        names += objective.read_positions
    return tuple(dict.fromkeys(names)) or None


def positions_in(names: Iterable[str], batch: Batch) -> Tensor:
    """Returns [R], the flat positions that these fields point at, each once; for one batch always the same tensor."""
    names = tuple(names)
    key = (positions_in, names)
    if key not in batch.known:
        batch.known[key] = copied(host_positions_in(names, batch), batch.ragged("tokens").device)
    return batch.known[key]


def host_positions_in(names: Iterable[str], batch: Batch) -> Tensor:
    """The same, on the CPU."""
    places = []
    for name in names:
        if name == FIRST:
            tokens = batch.ragged("tokens").layout
            places.append(tokens.starts[tokens.lengths > 0])
        else:
            field = batch[name]
            places.append(field.host.values if isinstance(field, Ragged) else batch.host.tensor(name))
    return torch.cat(places).unique()
