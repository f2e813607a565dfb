"""Segments: every token exactly once an epoch, words whole, never too long."""

from typing import Any

import numpy as np
import pytest

from bertie.data.samples.frame import Frame
from bertie.data.samples.segments import SegmentSamples
from bertie.data.shapes import Segments


@pytest.mark.parametrize("length", [8, 32, 128])
def test_an_epoch_holds_every_token_once(make_corpus: Any, frame: Frame, length: int) -> None:
    corpus = make_corpus([1, 0, 6, 7, 126, 127, 1000, 0, 3333, 2], numbered=True)
    samples = SegmentSamples(Segments(length=length), corpus, frame)
    rows = [samples.sample(0, 0, index) for index in range(samples.num_samples)]
    assert all(row["tokens"][0] == 1 and row["tokens"][-1] == 2 for row in rows)
    found = np.concatenate([row["tokens"][1:-1] for row in rows])
    assert found.tolist() == list(range(100, 100 + int(corpus.lengths.sum())))


@pytest.mark.parametrize("length", [8, 32, 128])
def test_lengths_are_told_before_the_sample_is_made(make_corpus: Any, frame: Frame, length: int) -> None:
    corpus = make_corpus(list(range(0, 900, 7)))
    samples = SegmentSamples(Segments(length=length), corpus, frame)
    told = samples.lengths(np.arange(samples.num_samples))
    true = np.array([len(samples.sample(0, 0, index)["tokens"]) for index in range(samples.num_samples)])
    assert (true <= told).all()
    assert told.max() <= length
    assert true.sum() > 0.7 * told.sum()


def test_no_word_is_cut(make_corpus: Any, frame: Frame) -> None:
    corpus = make_corpus([5000])
    samples = SegmentSamples(Segments(length=64), corpus, frame)
    words = [samples.sample(0, 0, index)["words"] for index in range(samples.num_samples)]
    # Each segment numbers its own words from 0: a word in two segments would be counted twice.
    assert sum(int(row.max()) + 1 for row in words) == int(corpus.rows[0].words.sum())
    assert all(row[0] == row[-1] == -1 for row in words)


def test_a_word_longer_than_a_row_is_cut(make_corpus: Any, frame: Frame) -> None:
    corpus = make_corpus([100], numbered=True)
    corpus.rows[0].words[1:] = False
    samples = SegmentSamples(Segments(length=16), corpus, frame)
    rows = [samples.sample(0, 0, index)["tokens"] for index in range(samples.num_samples)]
    assert np.concatenate([row[1:-1] for row in rows]).tolist() == list(range(100, 200))
    assert max(map(len, rows)) <= 16
