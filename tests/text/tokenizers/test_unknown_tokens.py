"""Unknown tokens are counted among the tokens of the text, and many of them are worth a warning."""

import numpy as np
import pytest

from bertie.text.tokenizers.tokens import SpecialTokens, UnknownCount

SPECIAL = SpecialTokens(pad=0, unk=1, first=2, separator=3, mask=4)


def test_tokens_around_the_text_are_not_counted() -> None:
    assert SPECIAL.count_unknown(np.array([2, 9, 1, 1, 4, 8, 3, 0, 0])) == UnknownCount(2, 4)
    assert SPECIAL.count_unknown(np.array([], np.int64)) == UnknownCount(0, 0)
    assert SpecialTokens(first=2).count_unknown(np.array([2, 9])).num_unknown == 0


@pytest.mark.parametrize(("unknown", "warns"), [(0, False), (5, False), (6, True), (100, True)])
def test_more_than_a_few_percent_are_a_warning(unknown: int, warns: bool) -> None:
    what = UnknownCount(unknown, 100).warning()
    assert (what is not None) == warns
    assert what is None or (f"{unknown:.1f}% of the tokens ({unknown} of 100)" in what and "vocab train" in what)


def test_nothing_is_no_share() -> None:
    assert UnknownCount().plus(UnknownCount(0, 0)).warning() is None
