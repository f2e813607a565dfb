"""Permutation LM: the order, what is predicted, and what a query may know."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from bertie.batch import Batch, Places, Sample, collate
from bertie.data.masking import EachToken
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import RECIPES, xlnet
from bertie.objectives.objective import Vocabulary
from bertie.objectives.permutation_lm import PermutationLM, TwoStreams

VOCABULARY = Vocabulary(size=100, special=frozenset({0, 1}))


def sample_of(length: int, seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    tokens = np.array([0, *rng.integers(2, 100, length), 1])
    return {"tokens": tokens, "segments": np.sort(rng.integers(0, 2, length + 2))}


def permuted(length: int, seed: int = 0, rate: float = 0.4) -> Sample:
    return PermutationLM(rate=rate).corrupt(sample_of(length, seed), VOCABULARY, np.random.default_rng(seed))


def new_model(depth: int = 2) -> Model:
    recipe = xlnet(Size(depth=depth, width=16, num_heads=2), vocab_size=100)
    # Large first weights: what is seen must show.
    return Model.new(recipe.changed({"encoder.initial_std": 0.5}), vocabulary=VOCABULARY).eval()


def two_streams(model: Model) -> TwoStreams:
    owned = model.heads["permutation-lm"]
    assert isinstance(owned, TwoStreams)
    return owned


@given(st.integers(1, 200), st.integers(0, 5), st.sampled_from([1 / 6, 0.5]))
def test_what_is_predicted_comes_last_in_an_order(length: int, seed: int, rate: float) -> None:
    sample = sample_of(length, seed)
    tokens = np.asarray(sample["tokens"]).copy()
    hidden = PermutationLM(rate=rate).corrupt(sample, VOCABULARY, np.random.default_rng(seed))
    places, order = hidden["masked"], np.asarray(hidden["order"])
    assert isinstance(places, Places)
    chosen = places.positions
    assert abs(len(chosen) - max(1.0, length * rate)) < 1
    assert not set(tokens[chosen].tolist()) & VOCABULARY.special
    assert sorted(order[chosen]) == list(range(1, len(chosen) + 1))
    assert (np.delete(order, chosen) == 0).all()
    assert (np.asarray(hidden["tokens"]) == tokens).all()  # nothing is masked: the streams hide it
    assert np.asarray(hidden["masked_targets"]).tolist() == tokens[chosen].tolist()


def test_orders_differ_between_draws() -> None:
    objective = PermutationLM(rate=0.5, choose=EachToken())
    draws = [objective.corrupt(sample_of(20), VOCABULARY, np.random.default_rng(seed))["order"] for seed in range(9)]
    assert len({tuple(np.asarray(order)) for order in draws}) == 9


def test_a_query_sees_what_comes_earlier_in_the_order_and_never_its_own_token() -> None:
    model = new_model()
    batch = collate([permuted(length, length) for length in (9, 4, 14)])
    tokens, order, places = batch.ragged("tokens"), batch.tensor("order"), batch.tensor("masked")
    content: list[Tensor] = []

    def keep(table: nn.Module, given: tuple[Tensor, ...], looked_up: Tensor) -> None:
        content.append(looked_up)

    model.encoder.embeddings.tables["tokens"].register_forward_hook(keep)
    states = two_streams(model).query_states(model.encoder, batch)
    assert len(states) == len(places) > 8
    for number, place in enumerate(places.tolist()):
        (gradient,) = torch.autograd.grad(states[number].square().sum(), content[0], retain_graph=True)
        seen = gradient.abs().sum(-1) > 0
        expected = (order < order[place]) & (tokens.row_ids == tokens.row_ids[place])
        assert torch.equal(seen, expected)


def test_another_token_at_its_own_place_or_later_changes_no_prediction() -> None:
    model = new_model(depth=3)
    batch = collate([permuted(20)])
    tokens, order, places = batch.ragged("tokens"), batch.tensor("order"), batch.tensor("masked")
    with torch.no_grad():
        before = two_streams(model).query_states(model.encoder, batch)
        for number, place in enumerate(places.tolist()):
            hidden = order >= order[place]
            other = tokens.with_values(torch.where(hidden, 2 + (tokens.values + 7) % 98, tokens.values))
            after = two_streams(model).query_states(model.encoder, batch.with_fields({"tokens": other}))
            assert torch.equal(before[number], after[number])


def test_a_query_knows_where_it_stands() -> None:
    """Two places that see the same tokens get different states, by their distances alone."""
    model = new_model(depth=1)
    batch = collate([permuted(20)])
    alike = batch.with_fields({"order": batch.ragged("order").with_values(batch.tensor("order").clamp(max=1))})
    states = two_streams(model).query_states(
        model.encoder, Batch({k: v for k, v in alike.fields.items() if k != "segments"})
    )
    assert len(torch.unique(states.detach().round(decimals=3), dim=0)) == len(states)


def test_rows_are_counted_as_if_alone() -> None:
    model = new_model()
    samples = [permuted(length, length) for length in (30, 3, 11)]
    with torch.no_grad():
        together = model.loss(collate(samples))
        alone = [model.loss(collate([sample])) for sample in samples]
    total = sum(float(report.losses["permutation_lm"].sum) for report in alone)
    assert float(together.losses["permutation_lm"].sum) == pytest.approx(total, rel=1e-5)
    assert int(together.losses["permutation_lm"].count) == sum(
        len(np.asarray(one["masked_targets"])) for one in samples
    )


def test_a_batch_with_nothing_to_predict_costs_nothing() -> None:
    model = new_model().train()
    hidden = PermutationLM().corrupt({"tokens": np.array([0, 1])}, VOCABULARY, np.random.default_rng(0))
    batch = collate([hidden, hidden])
    report = model.loss(batch)
    report.loss().backward()
    assert float(report.loss().detach()) == 0.0
    assert PermutationLM().counts(batch) == {"permutation_lm": 0}


def test_encoders_without_positions_in_their_scores_or_one_stack_are_refused() -> None:
    size = Size(depth=1, width=16, num_heads=2)
    with pytest.raises(SpecError, match="would not know positions"):
        PermutationLM().build(RECIPES["bert"](size).encoder, VOCABULARY)
    with pytest.raises(SpecError, match="one stack of blocks"):
        PermutationLM().build(RECIPES["twoway"](size).encoder, VOCABULARY)


def test_what_is_remembered_is_seen_and_nothing_is_learned_from_it() -> None:
    model = new_model(depth=2)
    objective = PermutationLM(rate=0.4, remembered=0.25)
    drawn = [objective.corrupt(sample_of(20, seed), VOCABULARY, np.random.default_rng(seed)) for seed in range(20)]
    rows = [row for row in drawn if len(np.asarray(row["before_tokens"]))]
    assert 5 < len(rows) < 15, "half of the rows do without"
    batch = collate(rows[:2])
    assert batch.ragged("before_tokens").sizes == [5, 5] and batch.ragged("tokens").sizes == [17, 17]
    owned, looked_up = two_streams(model), []

    def keep(table: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        looked_up.append(output)

    model.encoder.embeddings.tables["tokens"].register_forward_hook(keep)
    states = owned.query_states(model.encoder, batch)
    before, content = looked_up
    assert not before.requires_grad and content.requires_grad
    changed = batch.ragged("before_tokens").values.clone()
    changed[0] = (changed[0] + 1) % 100
    other = batch.with_fields({"before_tokens": batch.ragged("before_tokens").with_values(changed)})
    moved = (owned.query_states(model.encoder, other) - states).abs().sum(-1) > 0
    row_ids = batch.ragged("masked").row_ids
    assert moved[row_ids == 0].all() and not moved[row_ids == 1].any()


def test_memory_without_a_place_for_it_is_refused() -> None:
    recipe = xlnet(Size(depth=1, width=16, num_heads=2), vocab_size=100)
    with pytest.raises(SpecError, match="has no memory"):
        Model(recipe.changed({"encoder.stack.block.mixer.memory_length": 0}), VOCABULARY)


def test_first_tokens_are_learned_too() -> None:
    """They would not be, if every row began with what is only remembered."""
    model, objective = new_model(depth=2), PermutationLM(rate=0.4, remembered=0.25)
    first = 99
    samples: list[Sample] = [{"tokens": np.r_[first, np.asarray(sample_of(20, seed)["tokens"])]} for seed in range(20)]
    batch = collate(
        [objective.corrupt(one, VOCABULARY, np.random.default_rng(seed)) for seed, one in enumerate(samples)]
    )
    looked_up: list[tuple[Tensor, Tensor]] = []

    def keep(table: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        if output.requires_grad:
            output.retain_grad()
            looked_up.append((given[0], output))

    model.encoder.embeddings.tables["tokens"].register_forward_hook(keep)
    two_streams(model).query_states(model.encoder, batch).sum().backward()
    ((ids, states),) = looked_up
    assert states.grad is not None and states.grad[ids == first].abs().sum() > 0


def test_a_batch_that_remembers_nothing_needs_no_memory() -> None:
    model, objective = new_model(depth=2), PermutationLM(rate=0.4, remembered=0.25)
    rows = [objective.corrupt(sample_of(20, seed), VOCABULARY, np.random.default_rng(seed)) for seed in range(20)]
    without = [row for row in rows if not len(np.asarray(row["before_tokens"]))][:2]
    plain = collate([{name: value for name, value in row.items() if not name.startswith("before_")} for row in without])
    states = [two_streams(model).query_states(model.encoder, batch) for batch in (collate(without), plain)]
    torch.testing.assert_close(states[0], states[1])
