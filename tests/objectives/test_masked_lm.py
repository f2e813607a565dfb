"""Masked LM: what is hidden, what is kept as target, and what the loss counts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import Places, Sample, collate
from bertie.data.masking import Replacement, WholeWords
from bertie.errors import TokenizerError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Vocabulary

VOCABULARY = Vocabulary(size=1000, mask=4, special=frozenset({0, 1, 2, 3, 4}))


def sample_of(length: int, seed: int = 0) -> Sample:
    tokens = np.random.default_rng(seed).integers(5, 1000, length)
    return {"tokens": np.array([2, *tokens, 3]), "label": np.array(1)}


def places(sample: Sample) -> np.ndarray:
    found = sample["masked"]
    assert isinstance(found, Places)
    assert found.into == "tokens"
    return found.positions


def array(sample: Sample, name: str) -> np.ndarray:
    found = sample[name]
    assert isinstance(found, np.ndarray)
    return found


def corrupt(sample: Sample, seed: int, objective: MaskedLM | None = None) -> Sample:
    return (objective or MaskedLM()).corrupt(sample, VOCABULARY, np.random.default_rng(seed))


@given(st.integers(1, 300), st.integers(0, 5), st.sampled_from([0.15, 0.4, 0.01]))
def test_budget_targets_and_special_tokens(length: int, seed: int, rate: float) -> None:
    sample = sample_of(length, seed)
    original = array(sample, "tokens").copy()
    hidden = corrupt(sample, seed, MaskedLM(rate=rate))
    chosen = places(hidden)
    budget = max(1.0, length * rate)
    assert len(chosen) == len(set(chosen))
    assert abs(len(chosen) - budget) < 1  # never more than the rounding off
    assert not set(original[chosen].tolist()) & VOCABULARY.special
    assert array(hidden, "masked_targets").tolist() == original[chosen].tolist()
    rest = np.delete(np.arange(length + 2), chosen)
    assert (array(hidden, "tokens")[rest] == original[rest]).all()
    assert (array(sample, "tokens") == original).all()
    assert hidden["label"] is sample["label"]


def test_a_word_with_an_unknown_piece_is_never_masked_in_part() -> None:
    sample: Sample = {"tokens": np.array([2, 10, 1, 11, 12, 13, 3]), "words": np.array([-1, 0, 0, 0, 1, 1, -1])}
    for seed in range(20):
        assert places(corrupt(sample, seed, MaskedLM(choose=WholeWords()))).tolist() == [4, 5]


def test_the_same_generator_gives_the_same_sample_and_another_another() -> None:
    sample = sample_of(200)
    first, again, other = corrupt(sample, 1), corrupt(sample, 1), corrupt(sample, 2)
    assert (array(first, "tokens") == array(again, "tokens")).all()
    assert (places(first) == places(again)).all()
    assert places(first).tolist() != places(other).tolist()


def test_eighty_ten_ten() -> None:
    rng = np.random.default_rng(0)
    sample = sample_of(500)
    kinds = np.zeros(3)
    for _ in range(200):
        hidden = MaskedLM().corrupt(sample, VOCABULARY, rng)
        now, before = array(hidden, "tokens")[places(hidden)], array(hidden, "masked_targets")
        kinds += [(now == 4).sum(), ((now != 4) & (now != before)).sum(), (now == before).sum()]
    total = kinds.sum()
    assert total == 200 * 75  # 15% of 500, exactly
    for count, share in zip(kinds, (0.8, 0.1, 0.1), strict=True):
        assert abs(count - share * total) < 3 * np.sqrt(share * (1 - share) * total)


def test_a_sample_of_special_tokens_alone_predicts_nothing() -> None:
    hidden = corrupt({"tokens": np.array([2, 3, 3])}, 0)
    assert len(places(hidden)) == 0
    assert array(hidden, "tokens").tolist() == [2, 3, 3]
    batch = collate([hidden, hidden])
    recipe = bert(Size(depth=1, width=8, num_heads=2), vocab_size=1000)
    report = MaskedLM().loss(Model.new(recipe).heads["masked-lm"], Model.new(recipe).encoder, batch)
    assert float(report.loss().detach()) == 0.0
    assert report.means()["masked_lm_accuracy"] == 0.0


def test_a_tokenizer_without_a_mask_is_named() -> None:
    with pytest.raises(TokenizerError, match="the tokenizer has no mask token"):
        MaskedLM().corrupt(sample_of(5), Vocabulary(size=10), np.random.default_rng(0))


def test_narrow_whole_numbers_from_shards_are_fine() -> None:
    """Shards hold 16-bit ids: what is made of them must still be looked up and predicted."""
    sample = {"tokens": array(sample_of(40), "tokens").astype(np.uint16)}
    recipe = bert(Size(depth=1, width=8, num_heads=2), vocab_size=1000).replace(objectives=(MaskedLM(),))
    report = Model.new(recipe).eval().loss(collate([corrupt(sample, 0)]))
    assert report.loss().isfinite()


def test_loss_and_accuracy_are_those_of_the_masked_positions() -> None:
    recipe = bert(Size(depth=1, width=16, num_heads=2), vocab_size=1000).replace(objectives=(MaskedLM(),))
    model = Model.new(recipe).eval()
    batch = collate([corrupt(sample_of(length, length), length) for length in (30, 5, 61)])
    report = model.loss(batch)
    states = model.encoder(batch).states.values
    logits = model.heads["masked-lm"](states)  # of every position
    expected, hits = [], []
    for place, target in zip(batch.tensor("masked").tolist(), batch.tensor("masked_targets").tolist(), strict=True):
        expected.append(-torch.log_softmax(logits[place], -1)[target])
        hits.append(float(logits[place].argmax() == target))
    torch.testing.assert_close(report.losses["masked_lm"].sum, torch.stack(expected).sum(), rtol=1e-5, atol=1e-4)
    assert report.losses["masked_lm"].count == len(expected)
    assert len(expected) in range(4 + 1 + 9, 5 + 1 + 10 + 1)
    assert report.means()["masked_lm_accuracy"] == pytest.approx(np.mean(hits))


def test_a_rule_without_randomness_masks_all_that_is_chosen() -> None:
    objective = MaskedLM(rate=0.5, replacement=Replacement(mask_share=1, random_share=0))
    hidden = corrupt(sample_of(100), 0, objective)
    assert (array(hidden, "tokens") == 4).sum() == 50
