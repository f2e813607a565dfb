"""Plans: permutations that lose nothing, batches that hold every sample once, jumps, budgets, ranks."""

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Sample
from bertie.data import epoch_plan as plans
from bertie.data.batching import Rows, TokenBudget
from bertie.data.epoch_plan import EpochPlan, Permutation, SampleKey
from bertie.errors import SpecError


class Counted:
    """Samples of which only number and lengths are asked."""

    shuffled = True

    def __init__(self, sizes: np.ndarray):
        self.sizes = sizes
        self.num_samples = len(sizes)
        self.longest = int(sizes.max())

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def sample(self, seed: int, epoch: int, index: int) -> Sample:
        raise AssertionError("a plan must not build samples")


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**64 - 1))
def test_a_permutation_loses_nothing(size: int, seed: int) -> None:
    order = Permutation(size, np.random.default_rng(seed))(np.arange(size))
    assert sorted(order.tolist()) == list(range(size))


def test_a_permutation_looks_random() -> None:
    size, draws = 10, 4_000
    counts = np.zeros((size, size))
    for seed in range(draws):
        counts[np.arange(size), Permutation(size, np.random.default_rng(seed))(np.arange(size))] += 1
    expected = draws / size
    assert abs(counts - expected).max() < 4.5 * np.sqrt(expected * 0.9)
    large = Permutation(1_000_000, np.random.default_rng(0))(np.arange(100_000))
    assert abs(np.corrcoef(large[:-1], large[1:])[0, 1]) < 0.01
    assert abs(large.mean() / 500_000 - 1) < 0.01


def test_a_huge_permutation_costs_nothing() -> None:
    order = Permutation(10**15, np.random.default_rng(0))
    places = np.arange(10**15 - 1000, 10**15)
    found = order(places)
    assert len(np.unique(found)) == 1000
    assert 0 <= found.min() <= found.max() < 10**15


def keys_of(plan: EpochPlan, steps: int, num_ranks: int = 1) -> list[SampleKey]:
    return [key for step in range(steps) for rank in range(num_ranks) for key in plan.batch(step, rank, num_ranks)]


@pytest.mark.parametrize("num_ranks", [1, 4])
@pytest.mark.parametrize("size", [Rows(rows=7), TokenBudget(tokens=300)])
def test_every_sample_comes_once_an_epoch(size: Any, num_ranks: int) -> None:
    samples = Counted(np.random.default_rng(0).integers(3, 100, 500))
    plan = EpochPlan(samples, size, seed=9)
    steps = int(3 * plan.steps_per_epoch / num_ranks) + 2
    times = Counter(keys_of(plan, steps, num_ranks))
    assert set(times.values()) == {1}
    for epoch in range(3):
        assert {key.number for key in times if key.epoch == epoch} == set(range(500))


def test_epochs_and_seeds_differ_in_order() -> None:
    samples = Counted(np.full(100, 5))
    one, other = EpochPlan(samples, Rows(rows=100), 1), EpochPlan(samples, Rows(rows=100), 2)
    orders = [[key.number for key in plan.batch(step)] for plan in (one, other) for step in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


def test_no_batch_is_above_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "CHUNK", 64)  # so that batches cross chunks
    sizes = np.random.default_rng(1).integers(3, 129, 1000)
    plan = EpochPlan(Counted(sizes), TokenBudget(tokens=1024), seed=0)
    totals = [sum(int(sizes[key.number]) for key in plan.batch(step)) for step in range(200)]
    assert min(totals) > 0
    assert max(totals) <= 1024
    assert np.mean(totals) > 0.85 * 1024


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = Counted(np.random.default_rng(2).integers(3, 129, 1000))
    whole = keys_of(EpochPlan(samples, TokenBudget(tokens=500), 0), 300)
    monkeypatch.setattr(plans, "CHUNK", 37)
    assert keys_of(EpochPlan(samples, TokenBudget(tokens=500), 0), 300) == whole


def test_a_budget_below_two_rows_is_refused() -> None:
    with pytest.raises(SpecError, match=r"200 tokens is too small.*at least 255"):
        EpochPlan(Counted(np.array([5, 128])), TokenBudget(tokens=200), 0)


@pytest.mark.parametrize("size", [Rows(rows=8), TokenBudget(tokens=600)])
def test_a_jump_gives_what_walking_gives(size: Any) -> None:
    samples = Counted(np.random.default_rng(0).integers(3, 100, 5000))
    walked = EpochPlan(samples, size, 4)
    steps = [walked.batch(step) for step in range(1500)]
    assert EpochPlan(samples, size, 4).batch(1499) == steps[1499]
    far = EpochPlan(samples, size, 4).batch(1_000_000)
    assert far == pickle.loads(pickle.dumps(walked)).batch(1_000_000)
    assert far[0].epoch > 1000
    # It goes on without a gap there too.
    around = [key for step in range(999_300, 1_000_700) for key in walked.batch(step)]
    middle = around[len(around) // 2].epoch
    assert sorted(key.number for key in around if key.epoch == middle) == list(range(5000))
