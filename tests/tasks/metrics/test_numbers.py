"""Correlations beside those of scipy."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bertie.tasks.metrics.numbers import mean_ranks, mean_squared_error, pearson, spearman

values = st.one_of(st.sampled_from([0.0, 1.0, 2.5, 2.5, -3.0]), st.floats(-1e3, 1e3).map(lambda value: round(value, 3)))
pairs = st.lists(st.tuples(values, values), min_size=2, max_size=30)


@given(pairs)
def test_correlations_equal_scipy(examples: list[tuple[float, float]]) -> None:
    gold, predicted = ([one for one, _ in examples], [other for _, other in examples])
    assert mean_ranks(np.array(gold)).tolist() == scipy.stats.rankdata(gold).tolist()
    if len(set(gold)) == 1 or len(set(predicted)) == 1:
        assert pearson(gold, predicted) == spearman(gold, predicted) == 0.0
        return
    assert pearson(gold, predicted) == pytest.approx(scipy.stats.pearsonr(gold, predicted).statistic, abs=1e-9)
    assert spearman(gold, predicted) == pytest.approx(scipy.stats.spearmanr(gold, predicted).statistic, abs=1e-9)


def test_ties_share_their_ranks() -> None:
    assert mean_ranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [4.0, 1.0, 4.0, 2.0, 4.0]


def test_numbers_of_any_size_correlate() -> None:
    for scale in (1e-200, 1.0, 1e150):
        assert pearson([scale, 2 * scale, 4 * scale], [1, 2, 4]) == pytest.approx(1.0)
    assert pearson([1, 2, 3], [-1, -2, -3]) == pytest.approx(-1.0)


def test_mean_squared_error() -> None:
    assert mean_squared_error([1.0, 2.0], [0.0, 4.0]) == 2.5
    assert mean_squared_error([], []) == 0.0
    assert not math.isnan(spearman([], []))


def test_one_number_is_not_spread_over_many() -> None:
    with pytest.raises(ValueError, match="do not belong together"):
        pearson([1.0], [1.0, 2.0])
