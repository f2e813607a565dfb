"""Replaced-token detection from test-only parts: an objective that owns a generator, a whole small encoder with a head.

The generator fills masked places, the encoder says which tokens are not the original ones. Here the generator sees only
its neighbours and the rule reaches further, so that what it writes can be found out. ELECTRA, section 2.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from tests.contracts.planted import draw_batch, measure, noise, repeats, save_and_load, tiny_block, tiny_encoder, train
from torch import Tensor, nn

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import Segments
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Classifier, VocabularyHead, VocabularyHeadSpec
from bertie.nn.initial import initialized
from bertie.nn.stack import StackSpec
from bertie.nn.visibility import Window
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary

NUM_WORDS = 10
LENGTHS = (12, 15)
RULE = repeats(NUM_WORDS, period=3, lengths=LENGTHS)


class Detector(nn.Module):
    def __init__(self, generator: Encoder, generator_head: VocabularyHead, head: Classifier):
        super().__init__()
        self.generator, self.generator_head, self.head = generator, generator_head, head


class ReplacedTokens(Objective):
    kind: Literal["replaced-tokens"] = "replaced-tokens"
    samples: Segments = Segments()
    rate: float = Field(default=0.25, gt=0, lt=1)
    weight: float = Field(default=5.0, gt=0)  # of the detector's loss against the generator's
    generator: StackSpec

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """`dice` are the generator's luck: with them in the batch, a loss is a function of batch and weights alone."""
        tokens = np.asarray(sample["tokens"])
        chosen = np.sort(rng.choice(len(tokens), max(1, round(len(tokens) * self.rate)), replace=False))
        gaps = tokens.copy()
        assert vocabulary.mask is not None
        gaps[chosen] = vocabulary.mask
        dice = rng.random(len(chosen), dtype=np.float32)
        return {**sample, "gaps": gaps, "chosen": Places("tokens", chosen), "dice": dice}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Detector:
        generator = encoder.replace(stack=self.generator).build()
        generator_head = VocabularyHeadSpec().build(encoder, vocabulary.size)
        head = initialized(Classifier(encoder.width, 1), encoder.initial_std)
        return Detector(generator, generator_head, head)

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        table = "embeddings.tables.tokens.weight"
        return {f"generator.{table}": table, "generator_head.weight": table}

    def loss(self, owned: nn.Module, encoder: nn.Module, batch: Batch) -> LossReport:
        assert isinstance(owned, Detector)
        tokens, chosen = batch.ragged("tokens"), batch.tensor("chosen")
        guesses = owned.generator(batch.renamed({"gaps": "tokens"})).states.values[chosen]
        logits = owned.generator_head(guesses)  # [P, V]
        generated = F.cross_entropy(logits, tokens.values[chosen], reduction="none")
        written = tokens.values.index_put((chosen,), drawn(logits.detach(), batch.tensor("dice")))
        replaced = (written != tokens.values).float()
        states = encoder(batch.with_fields({"tokens": tokens.with_values(written)})).states.values
        verdicts = owned.head(states).squeeze(-1)  # [T]
        detected = F.binary_cross_entropy_with_logits(verdicts, replaced, reduction="none")
        correct = ((verdicts.detach() > 0).float() == replaced).float()
        return LossReport(
            {"generator": Figure.over(generated), "detector": Figure.over(detected * self.weight)},
            {"accuracy": Figure.over(correct), "replaced": Figure.over(replaced)},
        )


def drawn(logits: Tensor, dice: Tensor) -> Tensor:
    """One id a row: the first whose summed probability passes the die."""
    sums = logits.softmax(-1).cumsum(-1)
    return torch.searchsorted(sums, dice[:, None]).squeeze(-1).clamp(max=logits.shape[-1] - 1)


class DetectorRecipe(Recipe):
    objectives: tuple[ReplacedTokens, ...]


def new_model() -> Model:
    generator = StackSpec(depth=1, block=tiny_block(inner=16), visibility=(Window(reach=1),))
    recipe = DetectorRecipe(
        name="detector", encoder=tiny_encoder(NUM_WORDS), objectives=(ReplacedTokens(generator=generator),)
    )
    return Model.new(recipe, seed=0)


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = new_model()
    train(model, RULE, steps=250)
    found, guessed = measure(model, RULE), measure(model, noise(NUM_WORDS, LENGTHS))
    majority = 1 - found["replaced"]  # what calling every token an original would reach
    assert majority < 0.8
    assert found["accuracy"] > 0.93
    assert guessed["accuracy"] < majority  # where there is no rule, nothing gives a replaced token away
    loaded = save_and_load(model, tmp_path / "model", DetectorRecipe, draw_batch(model, RULE, 8, (5,)))
    table = loaded.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert loaded.get_parameter("heads.replaced-tokens.generator.embeddings.tables.tokens.weight") is table
    assert loaded.get_parameter("heads.replaced-tokens.generator_head.weight") is table
    assert measure(loaded, RULE) == found


def test_the_generator_learns_from_its_own_loss_alone() -> None:
    """Drawing has no gradient, so the detector's loss moves the shared table but nothing else of the generator."""
    model = new_model()
    losses = model.loss(draw_batch(model, RULE, 8, (5,))).losses
    owned = model.heads["replaced-tokens"]
    assert isinstance(owned, Detector)
    table = model.encoder.get_parameter("embeddings.tables.tokens.weight")
    own = [parameter for parameter in owned.generator.parameters() if parameter is not table]
    by_detector = torch.autograd.grad(losses["detector"].sum, [table, *own], retain_graph=True, allow_unused=True)
    by_generator = torch.autograd.grad(losses["generator"].sum, [table, *own])
    assert by_detector[0] is not None and by_detector[1:] == (None,) * len(own)
    assert all(gradient.abs().sum() > 0 for gradient in by_generator)


def test_dice_draw_by_the_generators_probabilities() -> None:
    logits = torch.tensor([0.1, 0.6, 0.0, 0.3]).log()
    dice = torch.from_numpy(np.random.default_rng(0).random(4000, dtype=np.float32))
    shares = drawn(logits.expand(4000, 4), dice).bincount(minlength=4) / 4000
    torch.testing.assert_close(shares, logits.exp(), rtol=0, atol=0.03)
    assert shares[2] == 0
