"""Instances: a step's rows are its own, under the budget, whatever the micro-batches."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bertie.batch import Batch
from bertie.data.corpus import Corpus
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.shapes import Segments
from bertie.errors import SpecError
from bertie.models.recipe import Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.text.tokenizer import Tokenizer
from bertie.train.instances import Corruption, Instances, fixed_instances, sample_shape, vocabulary_of


def rows_of(batches: list[Batch]) -> list[tuple[int, ...]]:
    return sorted(tuple(row.tolist()) for batch in batches for row in batch.ragged("tokens").rows())


def test_micro_batches_hold_the_rows_of_the_step(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    chosen = recipe()
    samples = build_samples(sample_shape(chosen, 32), make_corpus(tmp_path, 60), Frame.of(tokenizer))
    corruption = Corruption(chosen.objectives, vocabulary_of(tokenizer))
    fine, coarse = (Instances(samples, corruption, 300, micro, seed=3) for micro in (70, 300))
    for step in (0, 5, 5000):
        parts, (whole,) = fine(step), coarse(step)
        assert len(parts) > 1
        assert all(len(part.tensor("tokens")) <= 70 for part in parts)
        assert len(whole.tensor("tokens")) <= 300
        assert rows_of(parts) == rows_of([whole])
        assert "words" not in whole
    assert rows_of(fine(1)) != rows_of(fine(2))
    assert rows_of(fine(7)) == rows_of(Instances(samples, corruption, 300, 70, seed=3)(7))
    assert rows_of(fine(7)) != rows_of(Instances(samples, corruption, 300, 70, seed=4)(7))


def test_what_is_measured_on_is_the_same_each_time(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    chosen = recipe()
    samples = build_samples(sample_shape(chosen, 32), make_corpus(tmp_path, 60), Frame.of(tokenizer))
    corruption = Corruption(chosen.objectives, vocabulary_of(tokenizer))
    first, again = (fixed_instances(samples, corruption, 20, 128) for _ in range(2))
    assert sum(batch.ragged("tokens").num_rows for batch in first) == 20
    assert all(torch.equal(one.tensor("masked"), two.tensor("masked")) for one, two in zip(first, again, strict=True))


def test_random_tokens_are_tokens_that_there_are(tokenizer: Tokenizer) -> None:
    vocabulary = vocabulary_of(tokenizer)
    assert (vocabulary.size, vocabulary.mask) == (65, 4)
    assert vocabulary.special == frozenset(range(5))


def test_objectives_that_eat_different_samples_are_refused(recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(SpecError, match="masked-lm, next-sentence eat 2 shapes"):
        sample_shape(recipe((MaskedLM(samples=Segments()), NextSentence())), 32)
    assert sample_shape(recipe((MaskedLM(samples=Segments()),)), 48) == Segments(length=48)
    assert np.isscalar(sample_shape(recipe(), 48).length)
