"""Sentence order: one judgement a row, over pairs that are swapped or not."""

import numpy as np
import pytest
import torch

from bertie.batch import collate
from bertie.data.shapes import Pairs
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert
from bertie.objectives.sentence_order import SentenceOrder


def test_loss_is_that_of_each_row_alone_and_its_count_is_known_before() -> None:
    recipe = bert(Size(depth=2, width=16, num_heads=2), vocab_size=50).replace(objectives=(SentenceOrder(),))
    assert Recipe.from_json(recipe.to_json()) == recipe
    model = Model.new(recipe).eval()
    rng = np.random.default_rng(0)
    samples = [{"tokens": rng.integers(0, 50, size), "partner": np.array(label)} for size, label in ((9, 0), (14, 1))]
    batch = collate(samples)
    together = model.loss(batch)
    alone = sum((model.loss(collate([sample])).losses["sentence_order"].sum for sample in samples), torch.zeros(()))
    torch.testing.assert_close(together.losses["sentence_order"].sum, alone, atol=1e-5, rtol=1e-5)
    assert together.losses["sentence_order"].count == 2
    assert SentenceOrder().counts(batch) == {"sentence_order": 2}


def test_pairs_from_other_documents_are_refused() -> None:
    with pytest.raises(SpecError, match="swapped"):
        SentenceOrder().replace(samples=Pairs())
