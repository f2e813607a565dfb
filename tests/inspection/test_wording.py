"""Specs in words: kinds, what is not as always, and numbers as people write them."""

from typing import Any

import pytest

from bertie.data.masking import Replacement
from bertie.data.shapes import Pairs
from bertie.inspection.wording import describe, describe_part
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.relative import RelativeSpec
from bertie.nn.attention.rotary import RotarySpec
from bertie.nn.feed_forward import DenseSpec, GatedSpec
from bertie.nn.lstm import LSTMSpec
from bertie.nn.visibility import Window


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "none"),
        (True, "yes"),
        (30_522, "30,522"),
        (1e-12, "1e-12"),
        (1 / 6, "0.1667"),
        ((), "none"),
        (("mixer", "feed-forward"), "mixer, feed-forward"),
        (Pairs(), "pairs"),
        (Pairs(order=True), "pairs(order yes)"),
        (Window(reach=64), "window(reach 64)"),
        (RotarySpec(base=160_000), "rotary(base 160,000)"),
        (Replacement(per="unit"), "(mask_share 0.8, random_share 0.1, per unit)"),
    ],
)
def test_values_in_words(value: Any, words: str) -> None:
    assert describe(value) == words


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (AttentionSpec(num_heads=4), "attention, 4 heads of 64, dot-product"),
        (
            AttentionSpec(num_heads=2, scorer=RelativeSpec(), memory_length=1000, bias=False),
            "attention, 2 heads of 128, relative, memory of 1,000, no biases",
        ),
        (DenseSpec(inner=1024), "dense 256 -> 1,024, gelu"),
        (GatedSpec(inner=384, activation="silu", bias=False), "gated 256 -> 384, silu, no biases"),
        (LSTMSpec(), "lstm"),
        (LSTMSpec(both_ways=False), "lstm(both_ways no)"),
    ],
)
def test_parts_in_words(spec: Any, words: str) -> None:
    assert describe_part(spec, 256) == words
