"""An objective from a plugin: a causal language model, which predicts each token from those before it."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import SampleShape, Segments
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.visibility import Causal
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Prediction, Vocabulary


class NextToken(Objective):
    kind: Literal["next-token"] = "next-token"
    prediction: ClassVar[Prediction | None] = Prediction("next_token", "next_targets")
    samples: SampleShape = Segments()
    head: VocabularyHeadSpec = VocabularyHeadSpec()

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        tokens = np.asarray(sample["tokens"])
        return {**sample, "seen": Places("tokens", np.arange(len(tokens) - 1)), "next_targets": tokens[1:]}

    def build(self, encoder: Any, vocabulary: Vocabulary) -> Any:
        return self.head.build(encoder, vocabulary.size)

    def ties(self, encoder: Any) -> Mapping[str, str]:
        return self.head.ties(encoder)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"next_token": len(batch.tensor("next_targets"))}

    def loss(self, owned: Any, encoder: Any, batch: Batch) -> LossReport:
        states = encoder(batch, visibility=Causal()).states.values
        losses, correct = owned.loss(states[batch.tensor("seen")], batch.tensor("next_targets"))
        return LossReport({"next_token": Figure.over(losses)}, {"next_token_accuracy": Figure.over(correct)})


def next_token(size: Size = SIZES["base"], vocab_size: int = 30_522) -> Recipe:
    return bert(size, vocab_size).replace(name="next-token", objectives=(NextToken(),))


RECIPES = {"next-token": next_token}
