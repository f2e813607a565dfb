"""Replacement of chosen tokens: the shares are kept, and nothing but the chosen positions is touched."""

import numpy as np
import pytest

from bertie.data.masking import Chosen, Replacement
from bertie.errors import SpecError


def each_alone(positions: np.ndarray) -> Chosen:
    return Chosen(positions, np.arange(len(positions)))


@pytest.mark.parametrize(("mask", "random"), [(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.5, 0.5)])
def test_shares_are_kept_and_nothing_else_is_touched(mask: float, random: float) -> None:
    num, vocab_size = 40_000, 10_000
    tokens = np.full(2 * num, 7)
    rule = Replacement(mask_share=mask, random_share=random)
    chosen = each_alone(np.arange(0, 2 * num, 2))
    replaced = rule.replace_tokens(tokens, chosen, 3, vocab_size, np.random.default_rng(0))
    assert (replaced[1::2] == 7).all()
    assert (tokens == 7).all()
    changed = replaced[::2]
    assert 0 <= changed.min() <= changed.max() < vocab_size
    for share, count in ((mask, (changed == 3).sum()), (1 - mask - random, (changed == 7).sum())):
        assert abs(count - share * num) <= 3 * np.sqrt(share * (1 - share) * num) + 3 * np.sqrt(num / vocab_size) + 3


def test_random_tokens_are_spread_over_the_whole_vocabulary() -> None:
    rule = Replacement(mask_share=0, random_share=1)
    chosen = each_alone(np.arange(8000))
    replaced = rule.replace_tokens(np.zeros(8000, int), chosen, 3, 8, np.random.default_rng(0))
    assert (np.abs(np.bincount(replaced, minlength=8) - 1000) < 4 * np.sqrt(1000)).all()


def test_shares_beyond_the_whole_are_refused() -> None:
    with pytest.raises(SpecError, match="share"):
        Replacement().replace(mask_share=0.8, random_share=0.3)
    with pytest.raises(SpecError, match="mask_share"):
        Replacement().replace(mask_share=1.1)
