"""Batches of rows under a budget of tokens: lengths enter, lists of row numbers leave."""

from collections.abc import Iterator

import numpy as np


def batches_by_length(lengths: np.ndarray, max_tokens: int) -> Iterator[np.ndarray]:
    """Rows of similar length together, longest first, so that memory peaks at once and little is ever padded."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    totals = np.cumsum(lengths[order])
    while start < len(order):
        before = totals[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(totals, before + max_tokens, side="right")))
        yield order[start:end]
        start = end
