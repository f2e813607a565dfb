"""An objective of your own: beside the masked tokens, a model guesses how long a row is."""

from pydoc_data.topics import topics
from typing import Literal

import torch.nn.functional as F
from torch import nn

import bertie
from bertie.batch import Batch
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import spanbert
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary


class RowLength(Objective):
    kind: Literal["row-length"] = "row-length"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> nn.Module:
        return nn.Linear(encoder.width, 1)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        guesses = owned(encoder.pool(encoder(batch).states)).squeeze(-1)
        lengths = batch.ragged("tokens").lengths / 100
        return LossReport({"row_length": Figure.over(F.mse_loss(guesses, lengths, reduction="none"))})


def counting_bert(size: Size, vocab_size: int) -> Recipe:
    masked = spanbert(size, vocab_size).objectives[0]
    return spanbert(size, vocab_size).replace(objectives=(masked, RowLength(samples=masked.samples)))


vocabulary = bertie.train_vocab(list(topics.values()), size=2000)
corpus = bertie.build_corpus(list(topics.values()), tokenizer=vocabulary)
print(bertie.pretrain(counting_bert, size="tiny", corpus=corpus, steps=50).metrics["row_length"])
