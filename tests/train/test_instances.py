"""Instances: a step's rows are its own, under the budget, whatever the micro-batches."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bertie.batch import Batch
from bertie.data.corpus import Corpus
from bertie.data.data_schedule import Curriculum, DataSchedule, Phase, stages_of
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.samples.sample_protocols import Samples
from bertie.data.shapes import Segments
from bertie.errors import SpecError
from bertie.models.recipe import Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.instances import Corruption, Instances, fixed_instances, sample_shape, vocabulary_of


def rows_of(batches: list[Batch]) -> list[tuple[int, ...]]:
    return sorted(tuple(row.tolist()) for batch in batches for row in batch.ragged("tokens").rows())


def course_of(samples: Samples, batch_tokens: int, seed: int) -> DataSchedule:
    return DataSchedule(stages_of(Curriculum(phases=(Phase(share=1, length=32),)), batch_tokens), [samples], seed)


def test_micro_batches_hold_the_rows_of_the_step(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    chosen = recipe()
    samples = build_samples(sample_shape(chosen, 32), make_corpus(tmp_path, 60), Frame.of(tokenizer))
    corruption = Corruption(chosen.objectives, vocabulary_of(tokenizer))
    course = course_of(samples, 300, seed=3)
    places = [course.seek(step, 10_000) for step in range(5001)]
    fine, coarse = (Instances(course, corruption, micro, seed=3) for micro in (70, 300))
    for step in (0, 5, 5000):
        parts, (whole,) = fine(places[step]), coarse(places[step])
        assert len(parts) > 1
        assert all(len(part.tensor("tokens")) <= 70 for part in parts)
        assert len(whole.tensor("tokens")) <= 300
        assert rows_of(parts) == rows_of([whole])
        assert "words" not in whole
    assert rows_of(fine(places[1])) != rows_of(fine(places[2]))
    again, other = (Instances(course_of(samples, 300, seed), corruption, 70, seed) for seed in (3, 4))
    assert rows_of(fine(places[7])) == rows_of(again(places[7]))
    assert rows_of(fine(places[7])) != rows_of(other(places[7]))


def test_ranks_share_the_rows_of_a_step(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    chosen = recipe()
    samples = build_samples(sample_shape(chosen, 32), make_corpus(tmp_path, 60), Frame.of(tokenizer))
    corruption = Corruption(chosen.objectives, vocabulary_of(tokenizer))
    course = course_of(samples, 300, seed=3)
    place = course.seek(7, 100)
    ranks = [Instances(course, corruption, 300, 3, rank=rank, num_ranks=3)(place) for rank in range(3)]
    assert sorted(row for rank in ranks for row in rows_of(rank)) == rows_of(
        Instances(course, corruption, 300, 3)(place)
    )


def test_static_masks_return(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    chosen = recipe()
    samples = build_samples(sample_shape(chosen, 32), make_corpus(tmp_path, 20), Frame.of(tokenizer))
    corruption = Corruption(chosen.objectives, vocabulary_of(tokenizer))
    course = course_of(samples, 300, seed=3)

    def different(num_masks: int | None) -> int:
        instances = Instances(course, corruption, 300, 3, num_masks=num_masks)
        return len({row for step in range(60) for row in rows_of(instances(course.seek(step, 60)))})

    assert different(2) <= 2 * samples.num_samples < different(3) <= 3 * samples.num_samples
    assert different(None) > 10 * samples.num_samples


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


def test_objectives_that_need_different_samples_are_refused(recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(SpecError, match="masked-lm, next-sentence need 2 sample shapes"):
        sample_shape(recipe((MaskedLM(samples=Segments()), NextSentence())), 32)
    assert sample_shape(recipe((MaskedLM(samples=Segments()),)), 48) == Segments(length=48)
    assert np.isscalar(sample_shape(recipe(), 48).length)
