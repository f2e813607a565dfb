"""Measures how good vectors are, by what the rows of their texts state.

Axes: N rows, W numbers of a vector.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertie.tasks.metrics.numbers import pearson, spearman
from bertie.tasks.metrics.ranking import retrieval_ranks
from bertie.tasks.siamese.siamese_rows import TEXTS, RowKind


class VectorAnswer(dict[str, Any]):
    """An answer that remembers its texts' vectors: ranks depend on all rows together."""

    vectors: np.ndarray  # [texts of the row, W]


def vector_figures(kind: RowKind, vectors: Sequence[np.ndarray], gold: Sequence[Any]) -> dict[str, float]:
    """Of rows of one kind; `vectors` [texts of the row, W] have length 1."""
    if kind == "scored":
        cosines = [float(one[0] @ one[1]) for one in vectors]
        return {"spearman": spearman(gold, cosines), "pearson": pearson(gold, cosines)}
    return {name: float(column.mean()) for name, column in row_figures(vectors, gold).items()}


def row_figures(vectors: Sequence[np.ndarray], seconds: Sequence[str]) -> dict[str, np.ndarray]:
    """[N] each, of pairs or triplets: the figure is the mean. Looked for is a row's second text, among those of all
    rows, each text once."""
    places: dict[str, int] = {}
    right = np.array([places.setdefault(text, len(places)) for text in seconds])
    candidates = np.stack([vectors[row][1] for row in np.unique(right, return_index=True)[1]])
    ranks = retrieval_ranks(np.stack([one[0] for one in vectors]), candidates, right)
    columns = {"mrr": 1 / ranks, "accuracy_at_1": ranks == 1}
    if all(len(one) == len(TEXTS) for one in vectors):
        columns["triplet_accuracy"] = np.array([one[0] @ one[1] > one[0] @ one[2] for one in vectors])
    return columns


def shortened(vectors: np.ndarray, size: int) -> np.ndarray:
    """The first numbers of each, of length 1 again."""
    vectors = vectors[:, :size]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
