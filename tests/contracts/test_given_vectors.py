"""Embeddings of another kind, from test-only parts: given vectors that are never learned, and no table of tokens."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from pydantic import Field
from tests.contracts.planted import draw_batch, measure, repeats, save_and_load, tiny_encoder, train
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.embeddings import EMBEDDINGS, Embeddings, EmbeddingsSpec, TableSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.objectives.masked_lm import MaskedLM

NUM_WORDS = 12
RULE = repeats(NUM_WORDS, period=3, lengths=(8, 12))


class GivenVectors(Embeddings):
    """A frozen vector a token, projected, beside learned tables of other fields."""

    def __init__(self, others: Embeddings, vectors: Tensor, width: int):
        super().__init__({}, others.norm, 0.0)
        self.others = others.tables
        self.vectors = nn.Buffer(vectors)
        self.project = nn.Linear(vectors.shape[-1], width)

    def forward(self, batch: Batch) -> Tensor:
        assert self.project is not None
        states = self.project(self.vectors[batch.tensor("tokens")])
        for table in self.others.values():
            states = states + table.look_up(batch)  # type: ignore[operator]
        normed: Tensor = self.norm(states)
        return normed


class GivenVectorsSpec(EmbeddingsSpec):
    kind: Literal["given-vectors"] = "given-vectors"  # type: ignore[assignment]
    tables: tuple[TableSpec, ...] = ()
    size: int = Field(ge=1)
    given_width: int = 32

    @property
    def vocab_size(self) -> int:
        return self.size

    def build(self, width: int) -> GivenVectors:
        vectors = np.random.default_rng(0).normal(0, 0.3, (self.size, self.given_width)).astype(np.float32)
        return GivenVectors(super().build(width), torch.from_numpy(vectors), width)


@pytest.fixture(autouse=True)
def known_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EMBEDDINGS, "given-vectors", GivenVectorsSpec)


def new_recipe(tied: bool = False) -> Recipe:
    embeddings = GivenVectorsSpec(size=NUM_WORDS + 1, tables=(TableSpec(field="positions", size=16),))
    encoder = tiny_encoder(NUM_WORDS).replace(embeddings=embeddings)
    return Recipe(name="given", encoder=encoder, objectives=(MaskedLM(head=VocabularyHeadSpec(tied=tied)),))


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = Model.new(new_recipe())
    assert model.recipe.vocab_size == NUM_WORDS + 1 and model.recipe.encoder.embeddings.max_length == 16
    vectors = model.get_buffer("encoder.embeddings.vectors").clone()
    train(model, RULE, steps=300)
    assert measure(model, RULE)["masked_lm_accuracy"] > 0.9
    assert torch.equal(model.get_buffer("encoder.embeddings.vectors"), vectors)
    save_and_load(model, tmp_path / "model", Recipe, draw_batch(model, RULE, 4, (5,)))


def test_a_head_cannot_be_tied_to_a_table_that_is_not_there() -> None:
    with pytest.raises(SpecError, match="'given-vectors' have no table of tokens to tie weights to; set `tied=False`"):
        Model.new(new_recipe(tied=True))


def test_unknown_embeddings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = new_recipe().to_json()
    monkeypatch.delitem(EMBEDDINGS, "given-vectors")
    with pytest.raises(SpecError, match=r"encoder\.embeddings: no embeddings of kind 'given-vectors' is known"):
        Recipe.from_json(text)
