"""Skip-gram with negative sampling from test-only parts: an encoder without layers, an objective with an output table.

A word's own vector tells its neighbours' output vectors from those of random words. Mikolov et al. (2013), section 2.2.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import Field
from tests.contracts.planted import MASK, Rule, draw_batch, measure, save_and_load, tiny_block, train
from torch import nn

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import Segments
from bertie.models.model import Model
from bertie.models.recipe import OBJECTIVES, Recipe
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.initial import initialized
from bertie.nn.stack import StackSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary

NUM_WORDS = 48
NUM_GROUPS = 8


def companions(num_groups: int = NUM_GROUPS, strangers: float = 0.1) -> Rule:
    """A row speaks of one group's words; some strangers are among them. A word's group is its number mod groups."""

    def draw(rng: np.random.Generator) -> Sample:
        length = rng.integers(6, 11)
        members = np.arange(rng.integers(num_groups), NUM_WORDS, num_groups)
        anyone = rng.integers(0, NUM_WORDS, length)
        return {"tokens": 1 + np.where(rng.random(length) < strangers, anyone, rng.choice(members, length))}

    return draw


RULE = companions()


class SkipGram(Objective):
    kind: Literal["skip-gram"] = "skip-gram"
    samples: Segments = Segments()
    reach: int = Field(default=2, ge=1)
    num_negatives: int = Field(default=4, ge=1)

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        """Every pair of a word and a neighbour within reach, and random words that are no neighbours."""
        tokens = np.asarray(sample["tokens"])
        distances = np.arange(len(tokens)) - np.arange(len(tokens))[:, None]
        centers, neighbours = np.nonzero((distances != 0) & (np.abs(distances) <= self.reach))
        negatives = rng.integers(1, vocabulary.size, (len(centers), self.num_negatives))
        return {
            **sample,
            "centers": Places("tokens", centers),
            "neighbours": Places("tokens", neighbours),
            "negatives": negatives,  # [P, negatives]
        }

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> nn.Embedding:
        return initialized(nn.Embedding(vocabulary.size, encoder.width), encoder.initial_std)

    def loss(self, owned: nn.Module, encoder: nn.Module, batch: Batch) -> LossReport:
        own = encoder(batch).states.values[batch.tensor("centers")]  # [P, H]
        neighbours = batch.tensor("tokens")[batch.tensor("neighbours")]
        candidates = torch.cat([neighbours[:, None], batch.tensor("negatives")], 1)
        scores = torch.einsum("ph,pch->pc", own, owned(candidates))
        losses = -F.logsigmoid(scores[:, 0]) - F.logsigmoid(-scores[:, 1:]).sum(-1)
        told_apart = (scores[:, :1] > scores[:, 1:]).float()
        return LossReport({"skip_gram": Figure.over(losses)}, {"told_apart": Figure.over(told_apart)})


@pytest.fixture(autouse=True)
def known_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES, "skip-gram", SkipGram)


def new_model() -> Model:
    encoder = EncoderSpec(
        width=16,
        embeddings=EmbeddingsSpec(tables=(TableSpec(field="tokens", size=NUM_WORDS + 1),), norm_eps=None, dropout=0.0),
        stack=StackSpec(depth=0, block=tiny_block()),
        initial_std=0.1,
    )
    recipe = Recipe(name="skip-gram", tokenizer="words", encoder=encoder, objectives=(SkipGram(),))
    return Model.new(recipe, seed=0)


def share_of_kin(model: Model) -> float:
    """Of all words, those whose nearest other word is of the same group."""
    table = model.encoder.get_parameter("embeddings.tables.tokens.weight").detach()
    vectors = F.normalize(table[MASK + 1 :], dim=-1)
    nearest = (vectors @ vectors.T).fill_diagonal_(-1).argmax(-1)
    groups = torch.arange(NUM_WORDS) % NUM_GROUPS
    return float((groups[nearest] == groups).float().mean())


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = new_model()
    assert share_of_kin(model) < 0.3  # by chance 5 of 47
    train(model, RULE, steps=150, rate=2e-2)
    assert share_of_kin(model) > 0.9
    assert measure(model, RULE)["told_apart"] > 0.75  # an eighth of the negatives are of the group by chance
    loaded = save_and_load(model, tmp_path / "model", Recipe, draw_batch(model, RULE, 8, (5,)))
    assert share_of_kin(loaded) == share_of_kin(model)


def test_words_without_company_are_not_told_apart() -> None:
    """The same training on rows of any words finds no groups: the measure can fail."""
    model = new_model()
    train(model, companions(strangers=1.0), steps=150, rate=2e-2)
    assert share_of_kin(model) < 0.3
    assert measure(model, companions(strangers=1.0))["told_apart"] < 0.6


def test_a_model_is_its_two_tables() -> None:
    names = dict(new_model().named_parameters())
    assert set(names) == {"encoder.embeddings.tables.tokens.weight", "heads.skip-gram.weight"}
