"""Streams: row b of a step goes on exactly where row b of the step before ended, for ever."""

from typing import Any

import numpy as np
import pytest

from bertie.data.batching import Rows
from bertie.data.epoch_plan import EpochPlan
from bertie.data.samples.frame import Frame
from bertie.data.samples.streams import StreamSamples
from bertie.data.shapes import Streams
from bertie.errors import InputError


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_streams_go_on_exactly(make_corpus: Any, frame: Frame, num_ranks: int) -> None:
    corpus = make_corpus([50, 0, 7, 200, 41], numbered=True)
    samples = StreamSamples(Streams(length=16, num_streams=4), corpus, frame)
    plan = EpochPlan(samples, Rows(rows=4 // num_ranks), seed=5)
    circle = np.concatenate([np.append(row.ids, 2) for row in corpus.rows if len(row.ids)])
    streams: list[list[int]] = [[] for _ in range(4)]
    for step in range(60):  # several epochs
        rows = [samples.sample(5, *key) for rank in range(num_ranks) for key in plan.batch(step, rank, num_ranks)]
        for stream, row in zip(streams, rows, strict=True):
            assert len(row["tokens"]) == 16
            assert not stream or stream[-1] == row["tokens"][0]
            stream[-1:] = [*row["tokens"].tolist(), int(row["following"])]
    for number, stream in enumerate(streams):
        begin = number * len(circle) // 4
        assert stream == np.resize(np.roll(circle, -begin), len(stream)).tolist()


def test_a_stream_may_be_longer_than_the_corpus(make_corpus: Any, frame: Frame) -> None:
    row = StreamSamples(Streams(length=20, num_streams=1), make_corpus([3], numbered=True), frame).sample(0, 0, 0)
    assert row["tokens"].tolist() == [100, 101, 102, 2] * 5
    assert row["words"][3] == -1


def test_an_empty_corpus_has_no_stream(make_corpus: Any, frame: Frame) -> None:
    with pytest.raises(InputError, match="no token"):
        StreamSamples(Streams(), make_corpus([0]), frame)
