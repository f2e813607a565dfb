"""Evaluation: figures over the whole, the baseline of frequencies, and that measuring changes nothing."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bertie.batch import Batch
from bertie.data.corpus import Corpus
from bertie.data.frozen import Frozen, write_frozen
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Prediction
from bertie.objectives.permutation_lm import PermutationLM
from bertie.train.pretraining.evaluation import (
    Evaluation,
    prediction_of,
    target_frequencies,
    token_frequencies,
    unigram_figures,
)
from bertie.train.pretraining.held_out import CorpusPart

Draw = Callable[..., list[Batch]]
MASKED = MaskedLM.prediction


def test_figures_are_of_all_batches_together(recipe: Callable[..., Recipe], draw_batches: Draw) -> None:
    model = Model.new(recipe(dropout=0.3)).train()
    parts, whole = draw_batches(model, [[30, 9], [8]]), draw_batches(model, [[30, 9, 8]])
    frequencies = np.ones(model.recipe.vocab_size, np.int64)
    split, joined = (Evaluation(batches, frequencies, MASKED)(model) for batches in (parts, whole))
    assert split == pytest.approx(joined, rel=1e-4)
    assert split["perplexity"] == pytest.approx(math.exp(split["masked_lm"]))
    assert split["loss"] == pytest.approx(split["masked_lm"] + split["next_sentence"], rel=1e-5)
    assert model.training, "it goes on as it was"


def test_measuring_draws_nothing(recipe: Callable[..., Recipe], draw_batches: Draw) -> None:
    model = Model.new(recipe(dropout=0.3)).train()
    evaluation = Evaluation(draw_batches(model, [[20]]), np.ones(65, np.int64), MASKED)
    state = torch.get_rng_state()
    assert evaluation(model) == evaluation(model)
    assert torch.equal(state, torch.get_rng_state())


def test_the_baseline_is_the_cross_entropy_of_the_frequencies() -> None:
    batches = [Batch({"masked_targets": torch.tensor([5, 5, 6])}), Batch({"masked_targets": torch.tensor([7])})]
    frequencies = np.array([0, 0, 0, 0, 0, 60, 30, 0])
    figures = unigram_figures(batches, frequencies, MASKED)
    total = 60 + 30 + 6  # what never came counts as once
    expected = -(2 * math.log(60 / total) + math.log(30 / total) + math.log(1 / total)) / 4
    assert figures == pytest.approx({"unigram_loss": expected, "unigram_accuracy": 0.5})


def test_without_hidden_tokens_there_is_no_baseline() -> None:
    batches = [Batch({"partner": torch.tensor([1])})]
    assert unigram_figures(batches, np.ones(3), MASKED) == unigram_figures(batches, np.ones(3), None) == {}
    assert Evaluation([], np.ones(3), None).warning({"sentence_order": 0.7}) is None
    evaluation = Evaluation([], np.ones(3), MASKED)
    assert evaluation.warning({"masked_lm": 2.0, "unigram_loss": 2.0}) is not None
    assert evaluation.warning({"masked_lm": math.nan, "unigram_loss": 2.0}) is not None


def test_frequencies_of_what_is_masked_already(tmp_path: Path) -> None:
    rows = [{"tokens": np.array([2, 4, 4, 3]), "masked_targets": np.array(targets)} for targets in ([5, 6], [6, 6])]
    write_frozen(tmp_path / "f.arrow", rows, 10, {})
    assert target_frequencies(Frozen(tmp_path / "f.arrow"), 8, MASKED).tolist() == [0, 0, 0, 0, 0, 1, 3, 0]


def test_frequencies_are_of_the_given_documents(make_corpus: Callable[..., Corpus], tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, 6)
    counts = token_frequencies(CorpusPart(corpus, np.array([1, 4])), 65)
    ids = np.concatenate([corpus.document(1).ids, corpus.document(4).ids])
    assert counts.tolist() == np.bincount(ids, minlength=65).tolist()


def test_objectives_declare_which_loss_has_a_baseline(recipe: Callable[..., Recipe]) -> None:
    prediction = prediction_of(recipe(objectives=(NextSentence(), PermutationLM())))
    assert prediction == Prediction("permutation_lm", "masked_targets")
    assert prediction_of(recipe(objectives=(NextSentence(),))) is None
    named = recipe(objectives=(MaskedLM(name="second"),))
    assert prediction_of(named) == Prediction("second.masked_lm", "masked_targets")
    evaluation = Evaluation([], np.ones(3), prediction)
    assert evaluation.prediction_loss({"loss": 9.0, "permutation_lm": 3.0}) == 3.0
    assert evaluation.prediction_loss({"loss": 9.0, "next_sentence": 0.5}) is None
    assert evaluation.warning({"permutation_lm": 3.0, "unigram_loss": 2.0}) is not None
    assert evaluation.warning({"permutation_lm": 1.0, "unigram_loss": 2.0}) is None
