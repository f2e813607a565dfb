"""Turns logits into probabilities, in double precision."""

import numpy as np

DIGITS = 6  # of a probability in an answer


def softmax(logits: np.ndarray) -> np.ndarray:
    """[..., K], over the last axis."""
    wide = np.asarray(logits, np.float64)
    shares = np.exp(wide - wide.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """By the tangent, which no logit is too large for."""
    return (1 + np.tanh(np.asarray(logits, np.float64) / 2)) / 2


def rounded(probability: float) -> float:
    return round(float(probability), DIGITS)
