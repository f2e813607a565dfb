"""Next-sentence prediction: is the second stretch the true neighbour of the first? BERT, section 3.1, task 2."""

from collections.abc import Mapping
from typing import Literal

import torch.nn.functional as F
from torch import nn

from bertie.batch import Batch
from bertie.data.shapes import Pairs
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Classifier
from bertie.nn.initial import initialised
from bertie.objectives.objective import Objective, Vocabulary
from bertie.objectives.report import Figure, LossReport


class NextSentence(Objective):
    """The sample's own label `partner` is the target: 0 for the true neighbour, 1 for one from another document."""

    kind: Literal["next-sentence"] = "next-sentence"
    samples: Pairs = Pairs()

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        return initialised(Classifier(encoder.width, 2), encoder.initial_std)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"next_sentence": len(batch.tensor("partner"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        logits = owned(encoder.pool(encoder(batch).states))
        targets = batch.tensor("partner")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({"next_sentence": Figure.over(losses)}, {"next_sentence_accuracy": Figure.over(correct)})
