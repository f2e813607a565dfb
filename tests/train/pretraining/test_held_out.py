"""Held-out documents: all documents once, the same for everyone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bertie.data.corpus import Corpus
from bertie.errors import SpecError
from bertie.train.pretraining.held_out import hold_out


def test_every_document_is_in_one_part(make_corpus: Callable[..., Corpus], tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, 90)
    learned, held = hold_out(corpus, 10)
    assert held.num_documents == 9
    assert sorted([*learned.numbers, *held.numbers]) == list(range(90))
    again = hold_out(Corpus.open(tmp_path), 10)[1]
    assert again.numbers.tolist() == held.numbers.tolist()
    assert len(set(np.diff(held.numbers).tolist())) > 1, "not every tenth, which might be one source's"
    for number in range(held.num_documents):
        there = corpus.document(int(held.numbers[number]))
        assert np.array_equal(held.document(number).ids, there.ids)
        assert held.lengths[number] == len(there.ids)


def test_two_are_held_out_at_least_and_half_at_most(make_corpus: Callable[..., Corpus], tmp_path: Path) -> None:
    assert hold_out(make_corpus(tmp_path / "a", 4), 100)[1].num_documents == 2
    with pytest.raises(SpecError, match="3 documents, too few to hold out 2"):
        hold_out(make_corpus(tmp_path / "b", 3), 100)
