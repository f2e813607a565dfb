"""Costs: equal to what torch counts where torch sees every product, and to arithmetic by hand where it does not."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from bertie.batch import Batch, Sample, collate
from bertie.data.shapes import Pairs
from bertie.inspection.costs import (
    activation_bytes,
    forward_flops,
    matrix_flops,
    pace_at_peak,
    training_flops_per_token,
    training_memory,
)
from bertie.models.model import Model
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.scoring import DotProductSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Vocabulary

VOCAB = 50


def small_recipe(masked_only: bool = False) -> Recipe:
    """With the reference scorer, whose products torch's counter sees."""
    recipe = bert(Size(depth=3, width=16, num_heads=2), VOCAB)
    block = recipe.encoder.stack.block
    mixer = block.mixer.replace(scorer=DotProductSpec(fused=False))
    stack = recipe.encoder.stack.replace(block=block.replace(mixer=mixer))
    encoder = recipe.encoder.replace(stack=stack, pooler=None if masked_only else recipe.encoder.pooler)
    objectives = (MaskedLM(samples=Pairs()),) if masked_only else (MaskedLM(samples=Pairs()), NextSentence())
    return recipe.replace(encoder=encoder, objectives=objectives)


def draw_batch(model: Model, sizes: Sequence[int]) -> Batch:
    rng = np.random.default_rng(0)
    samples = []
    for size in sizes:
        sample: Sample = {
            "tokens": rng.integers(5, VOCAB, size),
            "segments": np.zeros(size, np.int64),
            "partner": np.asarray(0),
        }
        for objective in model.recipe.objectives:
            sample = objective.corrupt(sample, Vocabulary(VOCAB, mask=4, special=frozenset(range(5))), rng)
        samples.append(sample)
    return collate(samples)


@pytest.mark.parametrize("masked_only", [False, True])
def test_flops_are_those_that_torch_counts(masked_only: bool) -> None:
    model = Model.new(small_recipe(masked_only))
    batch = draw_batch(model, [20, 20, 20])
    with FlopCounterMode(display=False) as counter:
        model.loss(batch).loss().backward()
    assert forward_flops(model).training_batch(batch) == counter.get_total_flops()


def test_rows_pay_for_their_own_length() -> None:
    model = Model.new(small_recipe())
    batch, flops = draw_batch(model, [8, 24]), forward_flops(model)
    num_predictions = len(batch.tensor("masked_targets"))
    assert flops.training_batch(batch) == flops.training(8 + 24, 8 * 8 + 24 * 24, num_predictions, 2)


def test_flops_of_a_token_by_hand() -> None:
    """Base on full rows of 512, as papers count it: six for every weight of the layers, and attention besides."""
    width, depth, length = 768, 12, 512
    layers = 6 * depth * 12 * width**2
    attention = 3 * depth * 4 * length * width
    head = 0.15 * 6 * (30_522 * width + width**2)
    row = 6 * (width**2 + 2 * width) / length
    found = training_flops_per_token(bert(SIZES["base"]), length)
    assert found == pytest.approx(layers + attention + head + row, rel=1e-9)
    unpredicted = training_flops_per_token(bert(SIZES["base"]), length, predicted_share=0.0)
    assert found - unpredicted == pytest.approx(head)


def test_a_shared_layer_works_in_each_place() -> None:
    layer = nn.Linear(3, 5)
    assert matrix_flops(nn.Sequential(layer, layer)) == 2 * matrix_flops(layer) == 2 * 2 * 15
    assert matrix_flops(nn.Embedding(7, 3)) == 0


def test_the_pace_at_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.new(small_recipe())
    monkeypatch.setattr("bertie.inspection.costs.peak_flops", lambda precision: 1e9)
    pace = pace_at_peak(model)
    assert pace is not None
    assert pace(32) == pytest.approx(1e9 / training_flops_per_token(model, 32))
    assert pace(64) < pace(32)
    monkeypatch.setattr("bertie.inspection.costs.peak_flops", lambda precision: None)
    assert pace_at_peak(model) is None


def test_memory_grows_with_the_batch_but_for_the_weights() -> None:
    model = Model.new(small_recipe())
    small, large = (training_memory(model, draw_batch(model, [20] * rows)) for rows in (4, 8))
    size = 4 * sum(parameter.numel() for parameter in model.parameters())
    assert (small.parameters, small.gradients, small.optimiser) == (size, size, 2 * size)
    assert large.activations == pytest.approx(2 * small.activations, rel=0.02)
    assert small.total == 4 * size + small.activations


def test_activations_are_what_autograd_keeps() -> None:
    model = Model.new(small_recipe(masked_only=True))
    batch = draw_batch(model, [20])
    width, depth, length, heads = 16, 3, 20, 2
    # At the least: what enters every linear layer, and attention's weights.
    least = 4 * depth * (length * (3 * width + 4 * width) + heads * length**2)
    assert least < activation_bytes(model, batch) < 8 * least
    assert torch.is_grad_enabled()
