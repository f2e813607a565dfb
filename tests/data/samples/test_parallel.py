"""Parallel text: both sides in one row, the longer one cut first, and what was cut is counted and told."""

from typing import Any

import numpy as np
import pytest

from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.samples.parallel import ParallelSamples
from bertie.data.shapes import Parallel, Segments
from bertie.errors import InputError, SpecError


def test_both_sides_are_in_the_row(make_corpus: Any, frame: Frame) -> None:
    one, two = make_corpus([5, 9], numbered=True), make_corpus([7, 4], seed=1, numbered=True)
    row: Any = ParallelSamples(Parallel(length=64), one, two, frame).sample(0, 0, 1)
    assert row["tokens"].tolist() == [1, *range(105, 114), 2, *range(107, 111), 2]
    assert row["languages"].tolist() == [0] * 11 + [1] * 5
    assert row["positions"].tolist() == [*range(11), *range(5)]
    assert "segments" not in row


@pytest.mark.parametrize(("sizes", "kept"), [((100, 5), (24, 5)), ((5, 100), (5, 24)), ((50, 60), (14, 15))])
def test_the_longer_side_is_cut(make_corpus: Any, frame: Frame, sizes: Any, kept: Any) -> None:
    one, two = make_corpus([sizes[0], 3], numbered=True), make_corpus([sizes[1], 3], numbered=True)
    samples = ParallelSamples(Parallel(length=32), one, two, frame)
    row: Any = samples.sample(0, 0, 0)
    assert ((row["languages"] == 0).sum() - 2, (row["languages"] == 1).sum() - 1) == kept
    assert (samples.num_cut_rows, samples.num_cut) == (1, sum(sizes) - 29)
    assert samples.losses == [f"1 of 2 rows are cut to 32 tokens: {sum(sizes) - 29} tokens are never seen"]
    assert samples.lengths(np.array([0, 1])).tolist() == [32, 9]


def test_several_separators_are_of_the_first_language(make_corpus: Any) -> None:
    corpus = make_corpus([5])
    row: Any = ParallelSamples(Parallel(), corpus, corpus, Frame(1, 2, 2, second_segment=0)).sample(0, 0, 0)
    assert row["languages"].tolist() == [0] * 8 + [1] * 6


def test_sides_must_fit(make_corpus: Any, frame: Frame) -> None:
    with pytest.raises(InputError, match="3 documents, the other 2"):
        build_samples(Parallel(), [make_corpus([1, 1, 1]), make_corpus([1, 1])], frame)
    with pytest.raises(SpecError, match="parallel text; give `translations`"):
        build_samples(Parallel(), make_corpus([1]), frame)
    with pytest.raises(SpecError, match=r"one text \(segments\); leave out `translations`"):
        build_samples(Segments(), [make_corpus([1]), make_corpus([1])], frame)


def test_what_has_no_translation_is_left_out_and_told(make_corpus: Any, frame: Frame) -> None:
    samples = build_samples(Parallel(), [make_corpus([3, 0, 3]), make_corpus([3, 3, 0])], frame)
    assert isinstance(samples, ParallelSamples)
    assert (samples.num_samples, samples.num_left_out) == (1, 2)
    assert samples.losses == ["2 of 3 texts are left out, as they or their translations are empty"]
