"""Predicts the relation of two segments from the pooled state: the common part of such objectives."""

from collections.abc import Mapping
from typing import ClassVar

import torch.nn.functional as F
from torch import nn

from bertie.batch import Batch
from bertie.data.shapes import Pairs
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Classifier
from bertie.nn.initial import initialized
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import FIRST, Objective, Vocabulary


class PairRelation(Objective):
    """The target is the sample's label `partner`, 0 or 1. Figures are named after the kind."""

    samples: Pairs = Pairs()
    read_positions: ClassVar[tuple[str, ...] | None] = (FIRST,)

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        return initialized(Classifier(encoder.width, 2), encoder.initial_std)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {self._figure: len(batch.tensor("partner"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = owned(encoder.pool(encoder(batch).states))
        targets = batch.tensor("partner")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({self._figure: Figure.over(losses)}, {f"{self._figure}_accuracy": Figure.over(correct)})

    @property
    def _figure(self) -> str:
        return self.kind.replace("-", "_")
