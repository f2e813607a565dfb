"""Batches: the same for any number of workers, and after any jump."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from bertie.batch import Batch, Sample
from bertie.data.batching import Batches, Rows, TokenBudget, batches_by_length
from bertie.data.epoch_plan import EpochPlan
from bertie.data.masking import NGrams, Spans, WholeWords
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.shapes import Packed, Pairs, Parallel, Segments, Streams, Windows
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Vocabulary

FAR = 1_000_000
VOCABULARY = Vocabulary(30_000, mask=3, special=frozenset({0, 1, 2, 3}))


class Corrupt:
    def __init__(self, objective: MaskedLM):
        self.objective = objective

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return self.objective.corrupt(sample, VOCABULARY, rng)


def make(make_corpus: Any, shape: Any, size: Any, chooser: Any) -> Batches:
    sizes = [40, 700, 90, 1500, 3, 260]
    sides = [make_corpus(sizes), make_corpus(sizes[::-1], seed=1)]
    samples = build_samples(shape, sides if isinstance(shape, Parallel) else sides[:1], Frame(1, 2))
    return Batches(samples, EpochPlan(samples, size, 11), 11, Corrupt(MaskedLM(choose=chooser)))


def content(batch: Batch) -> dict[str, list[int]]:
    return {name: batch.tensor(name).tolist() for name in batch.fields}


def load(batches: Batches, steps: list[int], num_workers: int) -> list[dict[str, list[int]]]:
    loader: Any = DataLoader(batches, batch_size=None, sampler=steps, num_workers=num_workers)  # type: ignore[arg-type]
    return [content(batch) for batch in loader]


CASES = [
    (Segments(length=64), TokenBudget(tokens=512), WholeWords()),
    (Pairs(length=64), Rows(rows=6), Spans()),
    (Packed(length=64), Rows(rows=6), NGrams()),
    (Streams(length=32, num_streams=6), Rows(rows=6), WholeWords()),
    (Windows(length=64), TokenBudget(tokens=512), WholeWords()),
    (Parallel(length=64), Rows(rows=3), Spans()),
]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(("shape", "size", "chooser"), CASES)
def test_any_number_of_workers_gives_the_same(make_corpus: Any, shape: Any, size: Any, chooser: Any) -> None:
    steps = [0, 1, 2, 3, 4, FAR, FAR + 1]
    batches = make(make_corpus, shape, size, chooser)
    expected = [content(batches[step]) for step in steps]
    for num_workers in (1, 2, 4):
        assert load(make(make_corpus, shape, size, chooser), steps, num_workers) == expected
    assert content(make(make_corpus, shape, size, chooser)[FAR]) == expected[5]
    assert content(pickle.loads(pickle.dumps(batches))[FAR + 1]) == expected[6]
    assert expected[0] != expected[5]


def test_another_seed_gives_other_masks(make_corpus: Any) -> None:
    one = make(make_corpus, Segments(length=64), Rows(rows=4), WholeWords())
    other = Batches(one.samples, one.plan, 12, one.prepare)
    assert content(one[0])["masked_targets"] != content(other[0])["masked_targets"]


def test_another_epoch_gives_other_masks(make_corpus: Any) -> None:
    one = make(make_corpus, Segments(length=64), Rows(rows=4), WholeWords())
    first, second = one.row(0, 3), one.row(1, 3)
    assert np.asarray(first["words"]).tolist() == np.asarray(second["words"]).tolist()
    assert np.asarray(first["tokens"]).tolist() != np.asarray(second["tokens"]).tolist()


def test_ranks_see_different_rows(make_corpus: Any) -> None:
    samples = build_samples(Segments(length=32), make_corpus([3000]), Frame(1, 2))
    plan = EpochPlan(samples, Rows(rows=4), 0)
    ranks = [Batches(samples, plan, 0, rank=rank, num_ranks=2)[0] for rank in range(2)]
    assert not torch.equal(ranks[0].tensor("tokens"), ranks[1].tensor("tokens"))
    assert ranks[0].ragged("tokens").num_rows == 4


def test_rows_of_similar_length_come_together() -> None:
    lengths = np.array([3, 50, 2, 49, 4])
    rows = [batch.tolist() for batch in batches_by_length(lengths, 100)]
    assert rows == [[1, 3], [4, 0, 2]]
    assert [batch.tolist() for batch in batches_by_length(np.array([500, 1]), 100)] == [[0], [1]]
