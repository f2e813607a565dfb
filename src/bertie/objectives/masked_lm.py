"""Masks some tokens and predicts them (masked language model). BERT, section 3.1, task 1."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from torch import nn

from bertie.batch import Batch, Places, Sample
from bertie.data.masking import Chooser, EachToken, Replacement
from bertie.data.shapes import SampleShape, Segments
from bertie.errors import TokenizerError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Prediction, Vocabulary


class MaskedLM(Objective):
    kind: Literal["masked-lm"] = "masked-lm"
    head_fields: ClassVar[frozenset[str]] = frozenset({"head"})
    prediction: ClassVar[Prediction | None] = Prediction("masked_lm", "masked_targets")
    read_positions: ClassVar[tuple[str, ...] | None] = ("masked",)
    samples: SampleShape = Segments()
    choose: Chooser = EachToken()
    rate: float = Field(default=0.15, gt=0, lt=1)
    replacement: Replacement = Replacement()
    head: VocabularyHeadSpec = VocabularyHeadSpec()

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        if vocabulary.mask is None:
            raise TokenizerError("the tokenizer has no mask token, which masked language modelling needs")
        tokens = np.asarray(sample["tokens"])
        eligible = ~np.isin(tokens, list(vocabulary.special))
        # Without `words` every token counts as a word.
        words = np.asarray(sample.get("words", np.arange(len(tokens))))
        budget = max(1.0, float(eligible.sum() * self.rate))
        chosen = self.choose.choose(words, eligible, budget, rng)
        replaced = self.replacement.replace_tokens(tokens, chosen, vocabulary.mask, vocabulary.size, rng)
        targets = tokens[chosen.positions]
        return {**sample, "tokens": replaced, "masked": Places("tokens", chosen.positions), "masked_targets": targets}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> VocabularyHead:
        return self.head.build(encoder, vocabulary.size)

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties(encoder)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"masked_lm": len(batch.tensor("masked_targets"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, VocabularyHead)
        states = encoder(batch).states.values
        # The head runs only at predicted tokens.
        losses, correct = owned.loss(states[batch.tensor("masked")], batch.tensor("masked_targets"))
        return LossReport({"masked_lm": Figure.over(losses)}, {"masked_lm_accuracy": Figure.over(correct)})
