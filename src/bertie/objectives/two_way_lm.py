"""Predicts each token twice, from those before it and from those after it (two-direction language model).

Peters et al., 2018, section 3.1: the log-likelihoods of both directions add up, and both share the output weights.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import SampleShape, Segments
from bertie.errors import SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feed_forward import ACTIVATIONS
from bertie.nn.heads import Transform, VocabularyHead, VocabularyHeadSpec
from bertie.nn.initial import initialized
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Prediction, Vocabulary


class TwoWayHead(nn.Module):
    """A transform for each direction, from its half of the width to that of the tables, and one output for both."""

    def __init__(self, ahead: nn.Module, back: nn.Module, output: VocabularyHead):
        super().__init__()
        self.ahead, self.back, self.output = ahead, back, output

    def transformed(self, states: Tensor, backward: Tensor) -> Tensor:
        """[P, H], [P] -> [P, tables' width]: each state by the half that has not seen the predicted token."""
        ahead, back = states.chunk(2, -1)
        return torch.where(backward[:, None], self.back(back), self.ahead(ahead))


class TwoWayLM(Objective):
    kind: Literal["two-way-lm"] = "two-way-lm"
    head_fields: ClassVar[frozenset[str]] = frozenset({"head"})
    prediction: ClassVar[Prediction | None] = Prediction("two_way_lm", "neighbour_targets")
    read_positions: ClassVar[tuple[str, ...] | None] = ("neighbours",)
    samples: SampleShape = Segments()
    head: VocabularyHeadSpec = VocabularyHeadSpec()

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Nothing is masked: what a token is predicted from are the states of its left and its right neighbour."""
        tokens = np.asarray(sample["tokens"])
        predicted = np.flatnonzero(~np.isin(tokens, list(vocabulary.special)))
        after_first, before_last = predicted[predicted > 0], predicted[predicted < len(tokens) - 1]
        targets = np.concatenate([after_first, before_last])
        backward = np.repeat([False, True], [len(after_first), len(before_last)])
        return {
            **sample,
            "neighbours": Places("tokens", targets + np.where(backward, 1, -1)),
            "neighbour_targets": tokens[targets],
            "neighbour_after": backward.astype(np.int64),
        }

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> TwoWayHead:
        if encoder.stack.kind != "two-directions":
            raise SpecError(
                f"a two-direction language model needs a stack of each direction, not {encoder.stack.kind}",
                hint="in any other stack a state has seen the token that it would predict",
            )
        inner, half, head = encoder.embeddings.table_width(encoder.width), encoder.width // 2, self.head
        if not head.transform and inner != half:
            raise SpecError(f"tables of width {inner} need a transform from each direction's width {half}")
        activation = ACTIVATIONS[head.activation]
        ahead, back = (
            Transform(half, inner, activation, head.norm_eps, head.bias) if head.transform else nn.Identity()
            for _ in range(2)
        )
        output = VocabularyHead(nn.Identity(), inner, vocabulary.size, head.tied, head.output_bias)
        return initialized(TwoWayHead(ahead, back, output), encoder.initial_std)

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties(encoder, "output.weight")

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"two_way_lm": len(batch.tensor("neighbour_targets"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, TwoWayHead)
        states = encoder(batch).states.values[batch.tensor("neighbours")]
        states = owned.transformed(states, batch.tensor("neighbour_after").bool())
        losses, correct = owned.output.loss(states, batch.tensor("neighbour_targets"))
        return LossReport({"two_way_lm": Figure.over(losses)}, {"two_way_lm_accuracy": Figure.over(correct)})
