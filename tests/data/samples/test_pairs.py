"""Pairs: half and half, the partner from another document, short on purpose, and the corpus that cannot give pairs."""

from typing import Any

import numpy as np
import pytest

from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.samples.pairs import PairSamples
from bertie.data.shapes import Pairs
from bertie.errors import InputError


def sides(row: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both stretches of a row [CLS] A [SEP] B [SEP]."""
    (end,) = np.flatnonzero(np.diff(row["segments"]))
    assert row["tokens"][end] == row["tokens"][-1] == 2
    assert row["tokens"][0] == 1
    return row["tokens"][1:end], row["tokens"][end + 1 : -1]


def document_of(corpus: Any, tokens: np.ndarray) -> int:
    """Where numbered tokens are from; they must be neighbours."""
    assert (np.diff(tokens) == 1).all()
    ends = 100 + np.cumsum(corpus.lengths)
    first, last = np.searchsorted(ends, [tokens[0], tokens[-1]], side="right")
    assert first == last
    return int(first)


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("length", [16, 128])
def test_the_label_is_true(make_corpus: Any, frame: Frame, order: bool, length: int) -> None:
    corpus = make_corpus([2, 0, 40, 400, 1, 90, 3000, 5], numbered=True)
    samples = PairSamples(Pairs(length=length, order=order), corpus, frame)
    labels = set()
    for epoch in range(5):
        for index in range(samples.num_samples):
            row = samples.sample(3, epoch, index)
            one, two = sides(row)
            assert len(row["tokens"]) <= length
            follows, precedes = two[0] == one[-1] + 1, two[-1] + 1 == one[0]
            same = document_of(corpus, one) == document_of(corpus, two)
            if row["partner"] == 0:
                assert follows
                assert same
            else:
                assert (precedes and same) if order else not same
            labels.add(int(row["partner"]))
    assert labels == {0, 1}


@pytest.mark.parametrize("lengths", [[3000] * 10, [2] * 50, [12] * 3000])
@pytest.mark.parametrize("order", [False, True])
def test_labels_are_half_and_half(make_corpus: Any, frame: Frame, lengths: list[int], order: bool) -> None:
    samples = PairSamples(Pairs(length=64, order=order), make_corpus(lengths), frame)
    keys = [(epoch, index) for epoch in range(200) for index in range(samples.num_samples)][:6000]
    labels = np.array([samples.sample(1, *key)["partner"] for key in keys])
    assert abs(labels.mean() - 0.5) < 3 * 0.5 / np.sqrt(len(labels))


def test_a_tenth_is_short(make_corpus: Any, frame: Frame) -> None:
    samples = PairSamples(Pairs(length=128), make_corpus([20_000, 20_000], numbered=True), frame)
    keys = [(epoch, index) for epoch in range(20) for index in range(samples.num_samples)]
    lengths = np.array([len(samples.sample(1, *key)["tokens"]) for key in keys])
    # Of the short ones half are below half of the row; the others end with a sentence, seldom below half.
    short = (lengths < 64).mean()
    assert 0.035 < short < 0.075
    assert lengths.mean() > 100


def test_words_go_on_counting_in_the_second_stretch(make_corpus: Any, frame: Frame) -> None:
    samples = PairSamples(Pairs(length=64), make_corpus([500, 500]), frame)
    row = samples.sample(0, 0, 3)
    words = row["words"][row["words"] >= 0]
    assert np.flatnonzero(row["words"] == -1).tolist() == [
        0,
        int(np.argmax(row["segments"])) - 1,
        len(row["words"]) - 1,
    ]
    assert set(np.diff(words)) <= {0, 1}


def test_a_corpus_of_one_document_is_refused(make_corpus: Any, frame: Frame) -> None:
    with pytest.raises(InputError, match=r"1 document with text.*another document.*blank line.*: `sentences=sop`"):
        build_samples(Pairs(), make_corpus([500, 0]), frame)
    assert build_samples(Pairs(order=True), make_corpus([500, 0]), frame).num_samples > 0


def test_a_model_of_one_segment_has_two_separators(make_corpus: Any) -> None:
    samples = PairSamples(Pairs(length=64), make_corpus([500, 500]), Frame(1, 2, num_between=2, second_segment=0))
    row = samples.sample(0, 0, 0)
    assert (row["tokens"] == 2).sum() == 3
    assert not row["segments"].any()
    assert len(row["tokens"]) <= 64
