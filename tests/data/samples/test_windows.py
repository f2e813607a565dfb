"""Windows: the pairs that a naive loop finds, no farther than drawn, never across sentences."""

from typing import Any

import numpy as np

from bertie.data.samples.frame import Frame
from bertie.data.samples.windows import WindowSamples, window_pairs
from bertie.data.shapes import Windows


def test_pairs_are_those_of_a_naive_loop(make_corpus: Any, frame: Frame) -> None:
    samples = WindowSamples(Windows(length=64, reach=4), make_corpus([200]), frame)
    row = samples.sample(0, 0, 1)
    reach, sentences = row["reach"], row["sentences"]
    assert len(np.unique(sentences)) > 1
    expected = {
        (centre, context)
        for centre in range(len(reach))
        for context in range(len(reach))
        if 0 < abs(centre - context) <= reach[centre] and sentences[centre] == sentences[context]
    }
    centres, contexts = window_pairs(reach, sentences)
    assert len(centres) == len(expected)
    assert set(zip(centres.tolist(), contexts.tolist(), strict=True)) == expected


def test_reach_is_drawn_evenly(make_corpus: Any, frame: Frame) -> None:
    samples = WindowSamples(Windows(length=1000, reach=5), make_corpus([1000]), frame)
    drawn = np.concatenate([samples.sample(0, epoch, 0)["reach"] for epoch in range(10)])
    counts = np.bincount(drawn, minlength=6)[1:]
    assert abs(counts - 2000).max() < 3.5 * np.sqrt(10_000 * 0.2 * 0.8)


def test_nothing_has_no_window() -> None:
    centres, contexts = window_pairs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(centres) == len(contexts) == 0


def test_windows_have_no_special_tokens_and_hold_every_token_once(make_corpus: Any, frame: Frame) -> None:
    samples = WindowSamples(Windows(length=50), make_corpus([30, 300], numbered=True), frame)
    tokens = np.concatenate([samples.sample(0, 0, index)["tokens"] for index in range(samples.num_samples)])
    assert tokens.tolist() == list(range(100, 430))
