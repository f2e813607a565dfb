"""What every objective may rely on: sums that add exactly, one pass of the encoder, pointers that stay right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.planted import MASK, tiny_block
from torch import Tensor

from bertie.batch import Batch, Places, Pointers, Sample, collate
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.stack import StackSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Vocabulary

NUM_WORDS = 20


@pytest.fixture
def model() -> Model:
    tables = (
        TableSpec(field="tokens", size=NUM_WORDS + 1),
        TableSpec(field="positions", size=16),
        TableSpec(field="segments", size=2, optional=True),
    )
    encoder = EncoderSpec(
        width=16,
        embeddings=EmbeddingsSpec(tables=tables, dropout=0.0),
        stack=StackSpec(depth=2, block=tiny_block()),
        pooler=FirstDenseSpec(),
        initial_std=0.2,
    )
    recipe = Recipe(name="pairs", encoder=encoder, objectives=(MaskedLM(rate=0.3), NextSentence()))
    return Model.new(recipe, seed=0).double()


@pytest.fixture
def samples(model: Model) -> list[Sample]:
    """Corrupted pairs of very different length, so that halves of the batch have different counts."""
    rng = np.random.default_rng(3)
    vocabulary = Vocabulary(model.recipe.vocab_size, mask=MASK)
    corrupted = []
    for length in (16, 15, 14, 3, 2, 1, 4):
        sample: Sample = {
            "tokens": rng.integers(1, NUM_WORDS + 1, length),
            "segments": np.arange(length) * 2 // length,
            "partner": np.asarray(rng.integers(0, 2)),
        }
        for objective in model.recipe.objectives:
            sample = objective.corrupt(sample, vocabulary, rng)
        corrupted.append(sample)
    return corrupted


def gradients_of(model: Model, losses: list[Tensor]) -> list[Tensor]:
    """Backward through one loss after another, as micro-batches do."""
    model.zero_grad()
    for loss in losses:
        loss.backward()
    return [torch.zeros_like(each) if each.grad is None else each.grad.clone() for each in model.parameters()]


def test_micro_batches_add_up_to_the_whole(model: Model, samples: list[Sample]) -> None:
    whole = model.loss(collate(samples))
    halves = [model.loss(collate(part)) for part in (samples[:2], samples[2:])]
    added = halves[0] + halves[1]
    for name, figure in whole.losses.items():
        assert added.losses[name].count == figure.count
        torch.testing.assert_close(added.losses[name].sum, figure.sum, rtol=1e-12, atol=0)
    for name, figure in whole.metrics.items():
        assert (added.metrics[name].sum, added.metrics[name].count) == (figure.sum, figure.count)
    torch.testing.assert_close(added.loss(), whole.loss(), rtol=1e-12, atol=0)
    counts = {name: figure.count for name, figure in added.losses.items()}
    shares = [half.loss(counts) for half in halves]
    torch.testing.assert_close(shares[0] + shares[1], whole.loss(), rtol=1e-12, atol=0)
    expected = gradients_of(model, [whole.loss()])
    assert sum(float(each.abs().sum()) for each in expected) > 1
    torch.testing.assert_close(gradients_of(model, shares), expected, rtol=1e-9, atol=1e-12)


def test_means_of_halves_would_not_add_up(model: Model, samples: list[Sample]) -> None:
    """Each half divided by its own count: what the counts are there to prevent."""
    whole = model.loss(collate(samples))
    halves = [model.loss(collate(part)) for part in (samples[:2], samples[2:])]
    assert whole.losses["masked_lm"].count != 2 * halves[0].losses["masked_lm"].count
    assert not torch.isclose((halves[0].loss() + halves[1].loss()) / 2, whole.loss(), rtol=1e-3)


def test_a_report_without_predictions_costs_nothing(model: Model, samples: list[Sample]) -> None:
    batch = collate(samples)
    none = Pointers(torch.zeros(0, dtype=torch.int64), torch.zeros(len(samples), dtype=torch.int64))
    empty = batch.with_fields({"masked": none, "masked_targets": none})
    report = model.loss(empty)
    assert report.losses["masked_lm"].count == 0
    assert report.detached().means()["masked_lm"] == 0
    assert torch.isfinite(report.loss())


def count_passes(model: Model, work: Callable[[], Any]) -> int:
    passes: list[None] = []
    hook = model.encoder.register_forward_hook(lambda *_: passes.append(None))
    work()
    hook.remove()
    return len(passes)


def test_objectives_of_one_batch_share_the_encoders_pass(model: Model, samples: list[Sample]) -> None:
    batch = collate(samples)
    assert len(model.recipe.objectives) == 2
    assert count_passes(model, lambda: model.loss(batch)) == 1
    apart = Model.new(model.recipe.replace(objectives=(NextSentence(),)), seed=0).double()
    apart.encoder.load_state_dict(model.encoder.state_dict())
    apart.heads["next-sentence"].load_state_dict(model.heads["next-sentence"].state_dict())
    alone = apart.loss(batch).losses["next_sentence"].sum
    torch.testing.assert_close(model.loss(batch).losses["next_sentence"].sum, alone, rtol=1e-12, atol=0)


def test_no_answer_outlives_its_step(model: Model, samples: list[Sample]) -> None:
    batch = collate(samples)
    before = model.loss(batch).loss()
    with torch.no_grad():
        model.encoder.get_parameter("embeddings.tables.tokens.weight").mul_(2)
    assert count_passes(model, lambda: model.loss(batch)) == 1
    assert not torch.isclose(model.loss(batch).loss(), before)


def test_pointers_point_at_what_their_places_named(samples: list[Sample]) -> None:
    batch = collate(samples)
    masked = batch.ragged("masked")
    assert isinstance(masked, Pointers) and masked.into == "tokens"
    for row, sample in enumerate(samples):
        places = sample["masked"]
        assert isinstance(places, Places)
        own = masked.rows()[row]
        assert torch.equal(batch.ragged("tokens").positions[own], torch.from_numpy(places.positions))
        assert (batch.ragged("tokens").row_ids[own] == row).all()


def test_pointers_follow_rows_without_places_and_other_fields() -> None:
    rows = [([5, 6, 7], [2, 0], [1]), ([8], [], [0, 1]), ([9, 10], [1, 1], [])]
    samples: list[Sample] = [
        {
            "tokens": np.array(tokens),
            "candidates": np.array([100 + token for token in tokens * 2]),
            "spans": Places("tokens", np.array(spans, dtype=np.int32)),
            "chosen": Places("candidates", np.array(chosen, dtype=np.int64)),
        }
        for tokens, spans, chosen in rows
    ]
    batch = collate(samples).to("cpu")
    spans, chosen = batch.ragged("spans"), batch.ragged("chosen")
    assert isinstance(spans, Pointers) and isinstance(chosen, Pointers)
    assert (spans.into, chosen.into) == ("tokens", "candidates")
    assert batch.tensor(spans.into)[spans.values].tolist() == [7, 5, 10, 10]
    assert spans.sizes == [2, 0, 2]
    assert batch.tensor(chosen.into)[chosen.values].tolist() == [106, 108, 108]
    assert chosen.sizes == [1, 2, 0]
    reordered = collate(samples[::-1])
    assert reordered.tensor("tokens")[reordered.tensor("spans")].tolist() == [10, 10, 7, 5]


def test_places_cannot_be_pointed_into_or_mixed() -> None:
    places = Places("tokens", np.array([0]))
    with pytest.raises(TypeError, match="cannot be pointed into"):
        collate([{"tokens": np.array([1]), "spans": places, "of": Places("spans", np.array([0]))}] * 2)
    with pytest.raises(TypeError, match="in every sample or in none"):
        collate([{"tokens": np.array([1]), "spans": places}, {"tokens": np.array([1]), "spans": np.array([0])}])


def test_a_renamed_batch_shows_the_encoder_only_what_was_named(model: Model, samples: list[Sample]) -> None:
    batch = collate(samples)
    other = Batch({"source": batch["tokens"], "segments": batch["segments"]}).renamed({"source": "tokens"})
    assert set(other.fields) == {"tokens"}
    bare = model.encoder(Batch({"tokens": batch["tokens"]})).states.values
    assert torch.equal(model.encoder(other).states.values, bare)
    assert not torch.allclose(model.encoder(batch).states.values, bare)
