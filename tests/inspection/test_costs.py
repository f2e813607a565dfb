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
    num_pairs,
    pace_at_peak,
    rate_of,
    training_flops_per_token,
    training_memory,
)
from bertie.models.model import Model
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import RECIPES, bert, distilbert, modernbert, spanbert, twoway, xlnet
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.heads import VocabularyHead
from bertie.nn.visibility import AntiCausal, Causal, Full, Visibility, Window
from bertie.objectives.distillation import Student
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Vocabulary
from bertie.objectives.replaced_tokens import ReplacedTokens

VOCAB = 50


def small_recipe(masked_only: bool = False) -> Recipe:
    """With the reference scorer, whose products torch's counter sees."""
    recipe = bert(Size(depth=3, width=16, num_heads=2), VOCAB)
    objectives = (MaskedLM(samples=Pairs()),) if masked_only else (MaskedLM(samples=Pairs()), NextSentence())
    changes = {"encoder.stack.block.mixer.scorer": DotProductSpec(fused=False), "objectives": objectives}
    return recipe.changed({**changes, "encoder.pooler": None if masked_only else recipe.encoder.pooler})


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
    pairs = flops.per_pair[Full()] * (8 * 8 + 24 * 24)
    num_read = flops.per_read * len({0, 8, *batch.tensor("masked").tolist()})  # the first tokens, and what is masked
    others = flops.per_token * (8 + 24) + flops.per_prediction * num_predictions + flops.per_row * 2 + num_read
    assert flops.training_batch(batch) == 3 * (pairs + others)


def test_flops_of_a_token_by_hand() -> None:
    """Base on full rows of 512: six for every weight of the layers, and attention besides. The last feed-forward is
    needed only where something is predicted and for the pooled token."""
    width, depth, length = 768, 12, 512
    layers = 6 * (depth * 12 - 8) * width**2
    num_read = 6 * 8 * width**2
    attention = 3 * depth * 4 * length * width
    head = 0.15 * (6 * (30_522 * width + width**2) + num_read)
    row = (6 * (width**2 + 2 * width) + num_read) / length
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
    assert (small.parameters, small.gradients, small.optimizer) == (size, size, 2 * size)
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


# --- other systems


def reference(recipe: Recipe) -> Recipe:
    """The same with scorers whose products torch's counter sees."""

    def slow(name: str) -> dict[str, object]:
        return {f"{name}.block.mixer.scorer": DotProductSpec(fused=False)}

    objectives = [
        one.changed(slow("generator.stack")) if isinstance(one, ReplacedTokens) else one for one in recipe.objectives
    ]
    return recipe.changed({**slow("encoder.stack"), "objectives": tuple(objectives)})


NARROW = Size(depth=2, width=16, num_heads=4)


@pytest.mark.parametrize("name", ["albert", "electra"])
def test_flops_of_descendants_are_those_that_torch_counts(name: str) -> None:
    """One block in every layer, narrow tables; two encoders, one head for each token."""
    model = Model.new(reference(RECIPES[name](NARROW, VOCAB)))
    batch = draw_batch(model, [20, 20])
    with FlopCounterMode(display=False) as counter:
        model.loss(batch).loss().backward()
    assert forward_flops(model).training_batch(batch) == counter.get_total_flops()


def test_places_that_are_told_twice_are_counted_once() -> None:
    model = Model.new(reference(spanbert(NARROW, VOCAB)))
    batch = draw_batch(model, [20, 20])
    flops = forward_flops(model)
    num_masked, width = len(batch.tensor("masked")), 16
    assert len(batch.tensor("span_targets")) <= num_masked
    assert flops.per_prediction == 2 * (width**2 + VOCAB * width) + 2 * (3 * width**2 + width**2 + VOCAB * width)
    assert flops.read_positions == ("masked", "span_before", "span_after")
    assert flops.training_batch(batch) <= flops.training([20, 20], num_masked)
    assert rate_of(model.recipe) == 0.15


def test_a_teacher_runs_forward_once() -> None:
    student, teacher = Model.new(reference(distilbert(NARROW, VOCAB))), Model.new(small_recipe())
    batch = draw_batch(student, [20, 20])
    alone = forward_flops(student).training_batch(batch)
    weights = training_flops_per_token(student, 20), 4 * sum(one.numel() for one in student.parameters())
    head = student.heads["distillation"]
    assert isinstance(head, Student)
    teacher_head = teacher.heads["masked-lm"]
    assert isinstance(teacher_head, VocabularyHead)
    head.learn_from(teacher.encoder, teacher_head)
    with FlopCounterMode(display=False) as counter:
        student.loss(batch).loss().backward()
    assert forward_flops(student).training_batch(batch) == counter.get_total_flops() > alone
    assert training_flops_per_token(student, 20) > weights[0]
    own = {id(one): one.numel() for part in (teacher.encoder, teacher_head) for one in part.parameters()}
    memory = training_memory(student, batch)
    assert memory.parameters == weights[1] + 4 * sum(own.values())
    assert memory.gradients == weights[1], "a teacher learns nothing"


def test_near_sight_costs_only_what_it_sees() -> None:
    with torch.device("meta"):
        model = Model(modernbert(Size(depth=3, width=16, num_heads=2), VOCAB))
    flops = forward_flops(model)
    near = Window(reach=64)
    assert flops.per_pair == {Full(): 4 * 16, near: 2 * 4 * 16}
    full = training_flops_per_token(model.recipe.changed({"encoder.stack.visibility": (Full(),)}), 1024)
    saved = 3 * flops.per_pair[near] * (1024**2 - num_pairs(near, 1024)) / 1024
    assert training_flops_per_token(model, 1024) == pytest.approx(full - saved)
    assert num_pairs(near, 1024) == pytest.approx(1024 * 129, rel=0.04)


@pytest.mark.parametrize(
    "visibility",
    [Full(), Causal(), AntiCausal(), Window(reach=0), Window(reach=2), Window(reach=3, dilation=2), Window(reach=50)],
)
def test_pairs_are_those_that_are_allowed(visibility: Visibility) -> None:
    for size in range(1, 12):
        positions = torch.arange(size)
        allowed = visibility.allows({"positions": positions[:, None]}, {"positions": positions[None]})
        assert num_pairs(visibility, size) == allowed.expand(size, size).sum()
    assert num_pairs(visibility & Causal(), 10) <= num_pairs(visibility, 10)


def test_two_directions_see_half_each() -> None:
    with torch.device("meta"):
        flops = forward_flops(Model(twoway(NARROW, VOCAB)))
    assert flops.per_pair == {Causal(): 2 * 4 * 8, AntiCausal(): 2 * 4 * 8}


def test_a_stream_of_queries_pays_for_what_is_predicted() -> None:
    """Queries pass every layer; the others need not leave the last one. A score has a second product for distances."""
    with torch.device("meta"):
        flops = forward_flops(Model(xlnet(NARROW, VOCAB)))
    square = 2 * 16**2
    keys, queries = 2 * square, (2 + 8) * square
    assert flops.per_token == 2 * keys + queries
    assert flops.per_prediction == 2 * queries + 2 * VOCAB * 16
    assert flops.per_pair == {Full(): 6 * 16}
    assert flops.per_predicted_pair == 2 * 6 * 16
    assert (
        flops.forward([10, 10], 4)
        == 20 * flops.per_token + 4 * (flops.per_prediction + 10 * flops.per_predicted_pair) + 200 * 6 * 16
    )
