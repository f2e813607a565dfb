"""Run in a child process with the library's path: exits with an error where attention.c is wrong or crashes here."""

import ctypes
import sys
from typing import Any

import numpy as np


def main(path: str) -> None:
    library = ctypes.CDLL(path)
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    ends: list[Any] = [ctypes.c_float, ctypes.c_float, ctypes.c_uint64, ctypes.c_int]
    library.attend.argtypes = [pointer] * 7 + [whole] * 8 + ends
    library.attend_backward.argtypes = [pointer] * 10 + [whole] * 4 + [pointer] + ends
    for reach in (1 << 40, 40):
        check(library, reach)


def check(library: ctypes.CDLL, reach: int) -> None:
    rng = np.random.default_rng(0)
    lengths = np.array([1, 7, 40, 129, 300, 16], np.int64)
    q, k, v, dout = (rng.standard_normal((lengths.sum(), 2, 32)).astype(np.float32) for _ in range(4))
    out, dq, dk, dv = (np.empty_like(q) for _ in range(4))
    logs = np.empty(q.shape[:2], np.float32)
    scale, steps = 32**-0.5, np.full(7, 64, np.int64)
    forward = [array.ctypes.data for array in (q, k, v, out, logs, lengths, lengths)]
    backward = [array.ctypes.data for array in (q, k, v, dout, logs, dq, dk, dv, lengths, lengths)]
    assert library.attend(*forward, len(lengths), 2, 32, reach, 64, 64, 64, 64, scale, 0.0, 0, 2) == 0
    assert library.attend_backward(*backward, len(lengths), 2, 32, reach, steps.ctypes.data, scale, 0.0, 0, 2) == 0

    start = 0
    for length in lengths:
        rows = slice(start, start + length)
        start += length
        places = np.arange(length)
        hidden = abs(places[:, None] - places) > reach
        for head in range(2):
            query, key, value, gradient = (array[rows, head].astype(float) for array in (q, k, v, dout))
            scores = np.where(hidden, -np.inf, query @ key.T * scale)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            of_weights = gradient @ value.T
            of_scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdims=True)) * scale
            pairs = (
                (out, weights @ value),
                (dv, weights.T @ gradient),
                (dq, of_scores @ key),
                (dk, of_scores.T @ query),
            )
            for found, expected in pairs:
                assert np.abs(found[rows, head] - expected).max() < 1e-5


if __name__ == "__main__":
    main(sys.argv[1])
