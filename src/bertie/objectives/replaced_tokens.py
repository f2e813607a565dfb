"""Detects replaced tokens: a small generator fills masked tokens, the encoder predicts which tokens are not the
original ones. ELECTRA, section 2."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import torch.nn.functional as F
from pydantic import Field
from torch import nn

from bertie.batch import Batch, Sample
from bertie.data.masking import Chooser, EachToken, Replacement
from bertie.data.shapes import SampleShape, Segments
from bertie.errors import SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feed_forward import ACTIVATIONS, ActivationName
from bertie.nn.heads import Detector, VocabularyHead, VocabularyHeadSpec
from bertie.nn.initial import initialized
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Objective, Prediction, Vocabulary

GAPS = "gaps"  # the tokens as the generator sees them


class Generator(nn.Module):
    """A model within the model: its parts have the names that a separate model would give them."""

    def __init__(self, encoder: Encoder, head: nn.Module):
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict({"masked-lm": head})


class Detection(nn.Module):
    def __init__(self, head: Detector, generator: Generator | None):
        super().__init__()
        self.head, self.generator = head, generator


class ReplacedTokens(Objective):
    """The generator's tables are the encoder's own. Without a generator it can detect, but not train."""

    kind: Literal["replaced-tokens"] = "replaced-tokens"
    head_fields: ClassVar[frozenset[str]] = frozenset({"activation", "weight", "generator", "generator_head"})
    prediction: ClassVar[Prediction | None] = Prediction("masked_lm", "masked_targets")
    samples: SampleShape = Segments()
    choose: Chooser = EachToken()
    rate: float = Field(default=0.15, gt=0, lt=1)
    replacement: Replacement = Replacement(mask_share=0.85, random_share=0.0)
    activation: ActivationName = "gelu"
    weight: float = Field(default=50.0, gt=0)  # of the detector's loss, relative to the generator's
    generator: EncoderSpec | None = None
    generator_head: VocabularyHeadSpec = VocabularyHeadSpec()

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Masks tokens. `dice` are the generator's random numbers: the loss depends on batch and weights alone."""
        masked_lm = MaskedLM(choose=self.choose, rate=self.rate, replacement=self.replacement)
        masked = masked_lm.corrupt(sample, vocabulary, rng)
        dice = rng.random(len(np.asarray(masked["masked_targets"])), dtype=np.float32)
        return {**masked, "tokens": sample["tokens"], GAPS: masked["tokens"], "dice": dice}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Detection:
        head = initialized(Detector(encoder.width, ACTIVATIONS[self.activation]), encoder.initial_std)
        if self.generator is None:
            return Detection(head, None)
        widths = [spec.embeddings.table_width(spec.width) for spec in (encoder, self.generator)]
        if widths[0] != widths[1]:
            raise SpecError(f"generator and encoder share tables, but theirs are {widths[1]} and {widths[0]} wide")
        return Detection(
            head, Generator(self.generator.build(), self.generator_head.build(self.generator, vocabulary.size))
        )

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        if self.generator is None:
            return {}
        names = [f"embeddings.tables.{field}.weight" for field in encoder.embeddings.fields]
        if encoder.embeddings.norm_eps is not None:
            names += [f"embeddings.norm.{last}" for last in ("weight", "bias")[: 1 + encoder.embeddings.norm_bias]]
        return {
            **{f"generator.encoder.{name}": name for name in names},
            **self.generator_head.ties(encoder, "generator.heads.masked-lm.weight"),
        }

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"masked_lm": len(batch.tensor("masked_targets")), "replaced_tokens": len(batch.tensor("tokens"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, Detection)
        if owned.generator is None:
            raise SpecError("the model has no generator to train with", hint="start from a `recipe`, not from a `base`")
        tokens, masked = batch.ragged("tokens"), batch.tensor("masked")
        seen = batch.with_fields({"tokens": batch.ragged(GAPS)})
        guesses = owned.generator.encoder(seen, positions=masked).states.values[masked]
        head, targets = owned.generator.heads["masked-lm"], batch.tensor("masked_targets")
        assert isinstance(head, VocabularyHead)
        generated, guessed, draws = head.loss_and_draws(guesses, targets, batch.tensor("dice"))
        written = tokens.values.index_put((masked,), draws)
        replaced = written != tokens.values
        verdicts = owned.head(encoder(batch.with_fields({"tokens": tokens.with_values(written)})).states.values)  # [T]
        detected = F.binary_cross_entropy_with_logits(verdicts, replaced.to(verdicts.dtype), reduction="none")
        correct = ((verdicts.detach() > 0) == replaced).float()
        return LossReport(
            {"masked_lm": Figure.over(generated), "replaced_tokens": Figure.over(detected, self.weight)},
            {
                "masked_lm_accuracy": Figure.over(guessed),
                "replaced_tokens_accuracy": Figure.over(correct),
                "replaced_tokens_found": Figure((correct * replaced).sum(), replaced.sum()),
            },
        )
