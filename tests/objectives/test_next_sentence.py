"""Next sentence: one judgement a row, from its pooled first state."""

import numpy as np
import torch

from bertie.batch import collate
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Vocabulary


def test_loss_is_that_of_each_row_alone() -> None:
    recipe = bert(Size(depth=2, width=16, num_heads=2), vocab_size=50).replace(objectives=(NextSentence(),))
    model = Model.new(recipe).eval()
    rng = np.random.default_rng(0)
    samples = [
        {
            "tokens": rng.integers(0, 50, size),
            "segments": (np.arange(size) > size // 2).astype(np.int64),
            "partner": np.array(label),
        }
        for size, label in ((9, 0), (14, 1), (8, 1))
    ]
    together = model.loss(collate(samples))
    alone = sum((model.loss(collate([sample])).losses["next_sentence"].sum for sample in samples), torch.zeros(()))
    torch.testing.assert_close(together.losses["next_sentence"].sum, alone, atol=1e-5, rtol=1e-5)
    assert together.losses["next_sentence"].count == 3
    assert together.metrics["next_sentence_accuracy"].count == 3


def test_a_sample_is_its_own_target() -> None:
    sample = {"tokens": np.arange(9), "partner": np.array(1)}
    assert NextSentence().corrupt(sample, Vocabulary(50), np.random.default_rng(0)) is sample
