"""Packed rows: nothing lost, never too long, nearly full, sentences whole."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.data.samples.frame import Frame
from bertie.data.samples.packed import PackedSamples
from bertie.data.shapes import Packed


def rows_of(samples: PackedSamples) -> list[Any]:
    return [samples.sample(0, 0, index) for index in range(samples.num_samples)]


@settings(max_examples=300)
@given(
    lengths=st.lists(st.integers(0, 400), min_size=1, max_size=40).filter(any),
    length=st.integers(16, 150),
    framed=st.booleans(),
)
def test_no_token_is_lost(make_corpus: Any, lengths: list[int], length: int, framed: bool) -> None:
    corpus = make_corpus(lengths, numbered=True)
    samples = PackedSamples(Packed(length=length), corpus, Frame(1, 2) if framed else Frame())
    rows = rows_of(samples)
    assert all(0 < len(row["tokens"]) <= length for row in rows)
    tokens = np.concatenate([row["tokens"] for row in rows])
    words = np.concatenate([row["words"] for row in rows])
    assert tokens[tokens >= 100].tolist() == list(range(100, 100 + sum(lengths)))
    assert ((words == -1) == (tokens < 100)).all()
    assert all((row["tokens"] >= 100).any() for row in rows)


@pytest.mark.parametrize(("length", "fill", "cut"), [(128, 0.7, 0.03), (512, 0.9, 0.01)])
def test_rows_are_nearly_full_and_end_with_sentences(
    make_corpus: Any, frame: Frame, length: int, fill: float, cut: float
) -> None:
    corpus = make_corpus(np.random.default_rng(1).integers(1, 900, 300).tolist(), numbered=True)
    rows = rows_of(PackedSamples(Packed(length=length), corpus, frame))
    begins = np.cumsum(corpus.lengths) - corpus.lengths + 100
    sentences = np.concatenate([row.sentences + begin for row, begin in zip(corpus.rows, begins, strict=True)])
    assert np.mean([len(row["tokens"]) for row in rows]) > fill * length
    assert np.mean([row["tokens"][1] not in sentences for row in rows]) <= cut


def test_documents_are_told_apart(make_corpus: Any, frame: Frame) -> None:
    corpus = make_corpus([10, 20, 0, 30, 500], numbered=True)
    row = rows_of(PackedSamples(Packed(length=128), corpus, frame))[0]
    separators = np.flatnonzero(row["tokens"] == 2)
    # [CLS] and 10 tokens, then a separator that still belongs to the first document.
    assert separators[:3].tolist() == [11, 32, 63]
    assert row["documents"][[0, 11, 12, 32, 33, 63, 64]].tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert row["tokens"][-1] == 2
    assert row["documents"].max() == 3


def test_a_row_that_ends_with_a_document_has_one_separator(make_corpus: Any, frame: Frame) -> None:
    (row,) = rows_of(PackedSamples(Packed(length=64), make_corpus([20]), frame))
    assert (row["tokens"] == 2).sum() == 1


def test_any_row_is_found_without_those_before_it(make_corpus: Any, frame: Frame) -> None:
    corpus = make_corpus([700] * 30)
    samples = PackedSamples(Packed(length=64), corpus, frame)
    copy = pickle.loads(pickle.dumps(samples))
    for index in (samples.num_samples - 1, 7, 200):
        assert copy.sample(0, 0, index)["tokens"].tolist() == samples.sample(0, 0, index)["tokens"].tolist()
