"""Span boundary: which tokens are asked for, from which states, and at which places of their span."""

from typing import cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bertie.batch import Batch, Places, Sample, collate
from bertie.data.masking import Spans
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import spanbert
from bertie.nn.encoder import Encoded, Encoder
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Vocabulary
from bertie.objectives.span_boundary import Boundary, SpanBoundary

VOCABULARY = Vocabulary(50, mask=4, special=frozenset(range(5)))
RECIPE = spanbert(Size(depth=1, width=16, num_heads=2), 50)
NOTHING: list[int] = []


def masked_at(positions: list[int], length: int = 10) -> Sample:
    """The token at position p was p + 20."""
    places = np.array(positions, np.int64)
    return {"tokens": np.full(length, 4), "masked": Places("tokens", places), "masked_targets": places + 20}


def asked(sample: Sample, longest: int = 20) -> tuple[list[int], ...]:
    """What stood there, what is before, what is after, the place in the span."""
    found = SpanBoundary(longest=longest).corrupt(sample, VOCABULARY, np.random.default_rng(0))
    before, after = found["span_before"], found["span_after"]
    assert isinstance(before, Places) and isinstance(after, Places) and before.into == after.into == "tokens"
    return (
        np.asarray(found["span_targets"]).tolist(),
        before.positions.tolist(),
        after.positions.tolist(),
        np.asarray(found["span_places"]).tolist(),
    )


@pytest.mark.parametrize(
    ("positions", "targets", "before", "after", "places"),
    [
        ([2, 3, 4], [22, 23, 24], [1, 1, 1], [5, 5, 5], [0, 1, 2]),
        ([2, 3, 5, 8], [22, 23, 25, 28], [1, 1, 4, 7], [4, 4, 6, 9], [0, 1, 0, 0]),
        ([0, 1, 3, 4], [23, 24], [2, 2], [5, 5], [0, 1]),  # nothing is before the first span
        ([5, 8, 9], [25], [4], [6], [0]),  # nothing is after the last
        ([1, 8], [21, 28], [0, 7], [2, 9], [0, 0]),
        (list(range(10)), NOTHING, NOTHING, NOTHING, NOTHING),
        (NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
    ],
)
def test_a_stretch_of_masked_tokens_is_asked_for_from_around_it(
    positions: list[int], targets: list[int], before: list[int], after: list[int], places: list[int]
) -> None:
    assert asked(masked_at(positions)) == (targets, before, after, places)


def test_spans_that_touch_are_one() -> None:
    """Two chosen spans side by side: the token between them is hidden, so it can be nobody's boundary."""
    _, before, after, places = asked(masked_at([2, 3, 4, 5]))
    assert (set(before), set(after), places) == ({1}, {6}, [0, 1, 2, 3])


def test_tokens_further_inside_than_the_longest_span_are_not_asked_for() -> None:
    assert asked(masked_at([2, 3, 4, 7]), longest=2) == ([22, 23, 27], [1, 1, 6], [5, 5, 8], [0, 1, 0])


def test_boundaries_are_never_masked_and_targets_are_what_stood_there() -> None:
    rng = np.random.default_rng(0)
    for length in (5, 30, 80):
        tokens = np.array([2, *rng.integers(5, 50, length), 3])
        masked = MaskedLM(choose=Spans(), rate=0.4).corrupt({"tokens": tokens}, VOCABULARY, rng)
        found = SpanBoundary().corrupt(masked, VOCABULARY, rng)
        hidden, before, after = (found[name] for name in ("masked", "span_before", "span_after"))
        assert isinstance(hidden, Places) and isinstance(before, Places) and isinstance(after, Places)
        assert not {*before.positions, *after.positions} & set(hidden.positions)
        here = before.positions + 1 + np.asarray(found["span_places"])
        assert (here < after.positions).all() and set(here) <= set(hidden.positions)
        assert np.asarray(found["span_targets"]).tolist() == tokens[here].tolist()
        assert np.asarray(found["tokens"]).tolist() == np.asarray(masked["tokens"]).tolist()


def test_before_anything_is_masked_it_cannot_stand() -> None:
    with pytest.raises(SpecError, match="span-boundary needs masked tokens; put the objective that masks before it"):
        SpanBoundary().corrupt({"tokens": np.arange(9)}, VOCABULARY, np.random.default_rng(0))


@pytest.fixture
def batch() -> Batch:
    """Rows of 10 and 12 tokens: five are asked for."""
    samples = [masked_at([2, 3, 7]), masked_at([0, 4, 5], length=12)]
    return collate([SpanBoundary().corrupt(one, VOCABULARY, np.random.default_rng(0)) for one in samples])


def given(batch: Batch, states: Tensor) -> Encoder:
    """An encoder that has these states to give."""
    return cast(Encoder, lambda asked: Encoded(batch.ragged("tokens").with_values(states)))


def test_the_states_around_a_span_and_no_others_tell_it(batch: Batch) -> None:
    owned = Model.new(RECIPE, seed=1).heads["span-boundary"]
    assert isinstance(owned, Boundary)
    states = torch.randn(22, 16, requires_grad=True)
    report = SpanBoundary().loss(owned, given(batch, states), batch)
    (gradient,) = torch.autograd.grad(report.losses["span_boundary"].sum, states)
    around = {1, 4, 6, 8, 10 + 3, 10 + 6}
    assert set(gradient.abs().sum(-1).nonzero().flatten().tolist()) == around


def test_loss_is_its_formula(batch: Batch) -> None:
    owned = Model.new(RECIPE, seed=1).heads["span-boundary"]
    assert isinstance(owned, Boundary)
    states = torch.randn(22, 16)
    report = SpanBoundary().loss(owned, given(batch, states), batch)
    table = owned.places.weight
    pairs = [(1, 4, 0), (1, 4, 1), (6, 8, 0), (13, 16, 0), (13, 16, 1)]
    joined = torch.stack([torch.cat([states[one], states[two], table[place]]) for one, two, place in pairs])
    logits = owned.head(owned.first(joined))
    expected = F.cross_entropy(logits, torch.tensor([22, 23, 27, 24, 25]), reduction="sum")
    torch.testing.assert_close(report.losses["span_boundary"].sum, expected)
    assert SpanBoundary().counts(batch) == {"span_boundary": 5}
    assert report.losses["span_boundary"].count == 5
    hits = (logits.argmax(-1) == torch.tensor([22, 23, 27, 24, 25])).float().mean()
    assert report.means()["span_boundary_accuracy"] == pytest.approx(float(hits))


def test_a_batch_that_asks_for_nothing_costs_nothing() -> None:
    model = Model.new(RECIPE)
    nothing = SpanBoundary().corrupt(masked_at([]), VOCABULARY, np.random.default_rng(0))
    report = model.eval().loss(collate([nothing, nothing]))
    assert report.means()["span_boundary"] == 0
    assert report.loss().isfinite()


def test_it_stands_beside_the_masks_with_a_head_of_its_own_on_one_table() -> None:
    model = Model.new(RECIPE.changed({"encoder.initial_std": 0.2})).eval()
    rng = np.random.default_rng(3)
    samples = []
    for length in (30, 60):
        sample: Sample = {"tokens": np.array([2, *rng.integers(5, 50, length), 3])}
        for objective in RECIPE.objectives:
            sample = objective.corrupt(sample, VOCABULARY, rng)
        samples.append(sample)
    report = model.loss(collate(samples))
    assert set(report.losses) == {"masked_lm", "span_boundary"}
    report.loss().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    table = model.encoder.get_parameter("embeddings.tables.tokens.weight")
    assert model.heads["span-boundary"].get_parameter("head.weight") is table
    assert model.heads["masked-lm"].get_parameter("weight") is table
    names = ("masked-lm.transform.dense.weight", "span-boundary.head.transform.dense.weight")
    assert len({model.heads.get_parameter(name) for name in names}) == 2
