"""Predicts a masked token from the two tokens around its span and its position in it (span boundary objective), with a
separate head. SpanBERT, section 3.2."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import SampleShape, Segments
from bertie.errors import SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feed_forward import ACTIVATIONS
from bertie.nn.heads import Transform, VocabularyHead, VocabularyHeadSpec
from bertie.nn.initial import initialized
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary


class Boundary(nn.Module):
    """State before the span, state after it, position in it -> two transforms -> the vocabulary."""

    def __init__(self, width: int, num_places: int, first: Transform, head: VocabularyHead):
        super().__init__()
        self.places = nn.Embedding(num_places, width)
        self.first, self.head = first, head

    def states(self, before: Tensor, after: Tensor, places: Tensor) -> Tensor:
        """Turns [P, H] each into [P, H]."""
        return self.first(torch.cat([before, after, self.places(places)], -1))


class SpanBoundary(Objective):
    """Reads what another objective masked, so it comes after that one. Neighbouring masked tokens are a span."""

    kind: Literal["span-boundary"] = "span-boundary"
    head_fields: ClassVar[frozenset[str]] = frozenset({"head"})
    read_positions: ClassVar[tuple[str, ...] | None] = ("span_before", "span_after")
    samples: SampleShape = Segments()
    longest: int = Field(default=20, ge=1)  # positions in a span; tokens further inside are not predicted
    head: VocabularyHeadSpec = VocabularyHeadSpec()

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        masked = sample.get("masked")
        if not isinstance(masked, Places):
            raise SpecError("span-boundary needs masked tokens", hint="put the objective that masks before it")
        positions, length = masked.positions, len(np.asarray(sample["tokens"]))
        opens, closes = np.diff(positions, prepend=-2) > 1, np.diff(positions, append=length + 1) > 1
        begins, ends = positions[opens], positions[closes]  # of spans
        numbers = np.cumsum(opens) - 1  # the span of each token
        places = positions - begins[numbers]
        bounded = (begins > 0) & (ends < length - 1)
        asked = (places < self.longest) & bounded[numbers]
        return {
            **sample,
            "span_before": Places("tokens", (begins[numbers] - 1)[asked]),
            "span_after": Places("tokens", (ends[numbers] + 1)[asked]),
            "span_places": places[asked].astype(np.int64),
            "span_targets": np.asarray(sample["masked_targets"])[asked],
        }

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Boundary:
        activation = ACTIVATIONS[self.head.activation]
        first = Transform(3 * encoder.width, encoder.width, activation, self.head.norm_eps)
        head = self.head.build(encoder, vocabulary.size)
        return initialized(Boundary(encoder.width, self.longest, first, head), encoder.initial_std)

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties(encoder, "head.weight")

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"span_boundary": len(batch.tensor("span_targets"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, Boundary)
        states = encoder(batch).states.values
        before, after = states[batch.tensor("span_before")], states[batch.tensor("span_after")]
        boundary = owned.states(before, after, batch.tensor("span_places"))
        losses, correct = owned.head.loss(boundary, batch.tensor("span_targets"))
        return LossReport({"span_boundary": Figure.over(losses)}, {"span_boundary_accuracy": Figure.over(correct)})
