"""Choosers: words whole, the budget exact, and the shares of the paper over a million tokens."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from bertie.batch import Places
from bertie.data.batching import Batches, Rows
from bertie.data.epoch_plan import EpochPlan
from bertie.data.masking import Chooser, EachToken, NGrams, Replacement, Spans, WholeWords, word_bounds
from bertie.data.samples.frame import Frame
from bertie.data.samples.segments import SegmentSamples
from bertie.data.shapes import Segments
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Vocabulary

CHOOSERS: list[Any] = [EachToken(), WholeWords(), Spans(), NGrams()]
WHOLE: list[Any] = [WholeWords(), Spans(), NGrams()]
MASK, VOCAB_SIZE = 3, 30_000


def numbered(sizes: list[int], gaps: set[int]) -> np.ndarray:
    """Words of these sizes; a token of no word stands before those in `gaps`."""
    words: list[int] = []
    for number, size in enumerate(sizes):
        words += [-1] * (number in gaps) + [number] * size
    return np.array(words, np.int64)


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=120),
    gaps=st.sets(st.integers(0, 120), max_size=6),
    barred=st.sets(st.integers(0, 700), max_size=12),
    rate=st.sampled_from([0.15, 0.3, 0.05]),
    chooser=st.sampled_from(WHOLE),
    seed=st.integers(0, 2**32),
)
def test_words_are_chosen_whole_and_the_rate_is_right(
    sizes: list[int], gaps: set[int], barred: set[int], rate: float, chooser: Any, seed: int
) -> None:
    """`barred` tokens may not be chosen, wherever in their words they are; nor may then the rest of those words."""
    words = numbered(sizes, gaps)
    eligible = (words >= 0) & ~np.isin(np.arange(len(words)), list(barred))
    free = set(range(len(sizes))) - set(words[~eligible].tolist())
    budget = max(1.0, rate * int(eligible.sum()))
    positions, units = chooser.choose(words, eligible, budget, np.random.default_rng(seed))
    assert (len(positions) > 0) == bool(free)
    assert (np.diff(positions) > 0).all()
    chosen = set(words[positions].tolist())
    assert chosen <= free
    assert len(positions) == sum(sizes[word] for word in chosen)
    assert chosen == free or abs(len(positions) - budget) < max(sizes[word] for word in free)
    assert (np.diff(units) >= 0).all()
    for unit in np.unique(units):
        assert (np.diff(positions[units == unit]) == 1).all()  # no unit reaches over a token that cannot be chosen


@given(count=st.integers(1, 300), rate=st.floats(0.01, 0.9), seed=st.integers(0, 2**32))
def test_single_tokens_are_exact(count: int, rate: float, seed: int) -> None:
    positions, _ = EachToken().choose(np.arange(count), np.ones(count, bool), rate * count, np.random.default_rng(seed))
    assert abs(len(positions) - rate * count) < 1
    assert len(np.unique(positions)) == len(positions)


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_nothing_to_choose_from(chooser: Any) -> None:
    for words in (np.zeros(0, np.int64), np.full(5, -1)):
        positions, units = chooser.choose(words, words >= 0, 1.0, np.random.default_rng(0))
        assert len(positions) == len(units) == 0


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_everything_is_chosen_when_asked(chooser: Any) -> None:
    words = numbered([1, 3, 2, 5], {1})
    assert chooser.choose(words, words >= 0, 11.0, np.random.default_rng(0)).positions.tolist() == [0, *range(2, 12)]


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_a_long_word_is_as_likely_as_a_short_one(chooser: Any) -> None:
    words = numbered([1, 6] * 100, set())
    rng = np.random.default_rng(0)
    times = np.zeros(200)
    for _ in range(1500):
        times += np.bincount(words[chooser.choose(words, words >= 0, 105.0, rng).positions], minlength=200)
    short, long = times[::2].mean(), times[1::2].mean() / 6
    assert abs(long / short - 1) < 0.06


def test_spans_are_geometric_in_words() -> None:
    words = np.repeat(np.arange(4000), 2)  # two pieces a word
    rng = np.random.default_rng(0)
    sizes = np.concatenate([np.bincount(Spans().choose(words, words >= 0, 80.0, rng).units) for _ in range(600)]) // 2
    expected = 0.2 * 0.8 ** np.arange(10)
    expected /= expected.sum()
    found = np.bincount(sizes, minlength=11)[1:] / len(sizes)
    assert sizes.max() == 10
    # The last span of each sample is cut off by the budget, so that short ones are a little more frequent.
    assert abs(found - expected).max() < 0.03


def test_ngrams_are_weighted_by_one_over_n() -> None:
    rng, words = np.random.default_rng(0), np.arange(3000)
    sizes = np.concatenate([np.bincount(NGrams().choose(words, words >= 0, 300.0, rng).units) for _ in range(100)])
    found = np.bincount(sizes, minlength=4)[1:] / len(sizes)
    assert len(found) == 3
    assert abs(found - np.array([6, 3, 2]) / 11).max() < 0.03


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_shares_over_a_million_tokens(make_corpus: Any, frame: Frame, chooser: Any) -> None:
    corpus = make_corpus([60_000])
    samples = SegmentSamples(Segments(length=512), corpus, frame)
    objective = MaskedLM(choose=chooser)
    vocabulary = Vocabulary(VOCAB_SIZE, MASK, frozenset({0, 1, 2, MASK}))
    batches = Batches(
        samples, EpochPlan(samples, Rows(rows=1), 0), 0, lambda row, rng: objective.corrupt(row, vocabulary, rng)
    )
    total = chosen = masked = kept = 0
    per_row: list[float] = []
    for step in range(17 * samples.num_samples):
        (row,) = batches.rows(step)
        places, tokens, targets = row["masked"], np.asarray(row["tokens"]), np.asarray(row["masked_targets"])
        assert isinstance(places, Places)
        now = tokens[places.positions]
        per_row.append(len(targets) - 0.15 * (len(tokens) - 2))
        total += len(tokens) - 2
        chosen += len(targets)
        masked += int((now == MASK).sum())
        kept += int((now == targets).sum())
    assert total >= 1_000_000
    # The budget is exact in every row, so that the total is far closer than draws of single tokens would be.
    assert abs(chosen - 0.15 * total) < 3 * max(1.0, float(np.std(per_row))) * np.sqrt(len(per_row))
    assert abs(chosen / total - 0.15) < 3 * np.sqrt(0.15 * 0.85 / total)
    for count, share in ((masked, 0.8), (kept, 0.1), (chosen - masked - kept, 0.1)):
        assert (
            abs(count / chosen - share) < 3 * np.sqrt(share * (1 - share) / chosen) + 1e-4
        )  # the last for chance hits


def test_a_unit_is_treated_alike_when_asked() -> None:
    rng = np.random.default_rng(0)
    tokens, words = rng.integers(10, VOCAB_SIZE, 3000), np.repeat(np.arange(1500), 2)
    alike = []
    for per in ("unit", "token"):
        chosen = Spans().choose(words, words >= 0, 1500.0, rng)
        replacement = Replacement.parse({"per": per})
        masked = replacement.replace_tokens(tokens, chosen, MASK, VOCAB_SIZE, rng)[chosen.positions] == MASK
        shares = np.bincount(chosen.units, masked) / np.bincount(chosen.units)
        alike.append(bool(np.isin(shares, (0, 1)).all()))
    assert alike == [True, False]


def test_without_words_each_token_is_one() -> None:
    row = MaskedLM(choose=WholeWords()).corrupt(
        {"tokens": np.arange(4, 104)}, Vocabulary(200, MASK, frozenset({MASK})), np.random.default_rng(0)
    )
    assert len(np.asarray(row["masked_targets"])) == 15


def test_bounds_of_words() -> None:
    words = np.array([-1, 0, 0, 1, -1, -1, 2, 2])
    starts, ends = word_bounds(words, words >= 0)
    assert (starts.tolist(), ends.tolist()) == ([1, 3, 6], [3, 4, 8])


@pytest.mark.parametrize("place", range(3))
def test_a_word_with_a_piece_that_may_not_be_chosen_is_left_whole(place: int) -> None:
    words = np.array([-1, 0, 0, 0, 1, 1, -1])
    eligible = words >= 0
    eligible[1 + place] = False
    starts, ends = word_bounds(words, eligible)
    assert (starts.tolist(), ends.tolist()) == ([4], [6])


def test_a_chooser_is_found_by_its_kind() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Chooser)
    assert adapter.validate_python({"kind": "spans", "stop": 0.3}) == Spans(stop=0.3)
    assert MaskedLM.from_json(MaskedLM(choose=NGrams(longest=2)).to_json()).choose == NGrams(longest=2)
