"""Probabilities of logits, however large."""

import numpy as np
import pytest

from bertie.tasks.probabilities import rounded, sigmoid, softmax


@pytest.mark.filterwarnings("error")
def test_large_logits_give_neither_warnings_nor_nan() -> None:
    assert softmax(np.array([1e4, 0.0, -1e4])).tolist() == [1.0, 0.0, 0.0]
    assert sigmoid(np.array([1e4, 0.0, -1e4])).tolist() == [1.0, 0.5, 0.0]


def test_the_usual_formulas() -> None:
    logits = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    powers = np.exp(logits.astype(np.float64))
    np.testing.assert_allclose(softmax(logits), powers / powers.sum(-1, keepdims=True))
    np.testing.assert_allclose(sigmoid(logits), powers / (1 + powers))
    assert rounded(np.float64(1 / 3)) == 0.333333
