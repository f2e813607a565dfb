"""Predicts every token from those before it (causal language model). Radford et al., 2018, section 3.1."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from torch import nn

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import Packed, SampleShape
from bertie.errors import SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.nn.visibility import And, Causal, Visibility
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Prediction, Vocabulary


class CausalLM(Objective):
    """Special tokens are predicted as well: that a text ends is a part of it."""

    kind: Literal["causal-lm"] = "causal-lm"
    head_fields: ClassVar[frozenset[str]] = frozenset({"head"})
    prediction: ClassVar[Prediction | None] = Prediction("causal_lm", "next_targets")
    read_positions: ClassVar[tuple[str, ...] | None] = ("before_next",)
    samples: SampleShape = Packed()
    head: VocabularyHeadSpec = VocabularyHeadSpec(transform=False, output_bias=False)

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Nothing is hidden: a token is predicted from the state of the one before it."""
        tokens = np.asarray(sample["tokens"])
        return {**sample, "before_next": Places("tokens", np.arange(len(tokens) - 1)), "next_targets": tokens[1:]}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> VocabularyHead:
        stack = encoder.stack
        if stack.kind != "stack" or not all(is_causal(stack.visibility_of(layer)) for layer in range(stack.depth)):
            raise SpecError(
                "a causal language model needs a stack in which no token sees a later one",
                hint="give the stack the visibility Causal()",
            )
        return self.head.build(encoder, vocabulary.size)

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties(encoder)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"causal_lm": len(batch.tensor("next_targets"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, VocabularyHead)
        states = encoder(batch).states.values
        losses, correct = owned.loss(states[batch.tensor("before_next")], batch.tensor("next_targets"))
        return LossReport({"causal_lm": Figure.over(losses)}, {"causal_lm_accuracy": Figure.over(correct)})


def is_causal(visibility: Visibility) -> bool:
    """Whether no token sees a later one; of visibilities that are not built from Causal() it is not known."""
    parts = visibility.parts if isinstance(visibility, And) else (visibility,)
    return any(isinstance(part, Causal) for part in parts)
