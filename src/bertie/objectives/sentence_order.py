"""Sentence-order prediction: do two neighbouring stretches stand in their order? ALBERT, section 3.1."""

from collections.abc import Mapping
from typing import Literal

import torch.nn.functional as F
from pydantic import field_validator
from torch import nn

from bertie.batch import Batch
from bertie.data.shapes import Pairs
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Classifier
from bertie.nn.initial import initialised
from bertie.objectives.objective import Objective, Vocabulary
from bertie.objectives.report import Figure, LossReport


class SentenceOrder(Objective):
    """The sample's own label `partner` is the target: 0 where the stretches are in order, 1 where they are swapped."""

    kind: Literal["sentence-order"] = "sentence-order"
    samples: Pairs = Pairs(order=True)

    @field_validator("samples")
    @classmethod
    def _swapped(cls, samples: Pairs) -> Pairs:
        if not samples.order:
            raise ValueError("the pairs must be swapped (order), not from another document")
        return samples

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        return initialised(Classifier(encoder.width, 2), encoder.initial_std)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"sentence_order": len(batch.tensor("partner"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = owned(encoder.pool(encoder(batch).states))
        targets = batch.tensor("partner")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({"sentence_order": Figure.over(losses)}, {"sentence_order_accuracy": Figure.over(correct)})
