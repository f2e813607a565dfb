"""Scores rankings of candidates: one group for each query.

Candidates of equal score are ranked with the relevant ones last, so that a constant score earns nothing by the order
of the file. Groups without a relevant candidate tell nothing about a system: they are left out, and counted.

Axes: C candidates, G groups with a relevant candidate, Q queries, W numbers of a vector.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

QUERIES = 1024  # whose scores are in memory at a time


@dataclass(frozen=True)
class GroupScores:
    """How well each group was ranked, in the order in which the groups first appear."""

    reciprocal_ranks: np.ndarray  # [G]
    average_precisions: np.ndarray  # [G]
    num_without_relevant: int

    @property
    def first_right(self) -> np.ndarray:
        """[G] bool: the first candidate is relevant."""
        return self.reciprocal_ranks == 1.0


def group_scores(
    groups: Sequence[Hashable], scores: Sequence[float] | np.ndarray, relevant: Sequence[float] | np.ndarray
) -> GroupScores:
    numbers: dict[Hashable, int] = {}
    group = np.array([numbers.setdefault(name, len(numbers)) for name in groups], dtype=np.int64)  # [C]
    values, is_relevant = np.asarray(scores, dtype=np.float64), np.asarray(relevant) > 0
    if not len(group) == len(values) == len(is_relevant):
        raise ValueError(f"{len(group)} groups, {len(values)} scores and {len(is_relevant)} relevances")
    order = np.lexsort((is_relevant, -values, group))
    group, is_relevant = group[order], is_relevant[order]
    sizes = np.bincount(group, minlength=len(numbers))
    starts = np.cumsum(sizes) - sizes
    ranks = np.arange(len(group)) - starts[group] + 1
    totals = np.concatenate([[0], np.cumsum(is_relevant)])
    found = totals[1:] - totals[starts][group]  # relevant ones so far in the group
    num_relevant = np.bincount(group[is_relevant], minlength=len(numbers))
    first = is_relevant & (found == 1)
    reciprocal = np.bincount(group[first], 1 / ranks[first], minlength=len(numbers))
    precision = np.bincount(group[is_relevant], (found / ranks)[is_relevant], minlength=len(numbers))
    kept = num_relevant > 0
    return GroupScores(reciprocal[kept], precision[kept] / num_relevant[kept], int((~kept).sum()))


def ranking_scores(
    groups: Sequence[Hashable], scores: Sequence[float] | np.ndarray, relevant: Sequence[float] | np.ndarray
) -> dict[str, float]:
    """Mean reciprocal rank, accuracy at 1 and mean average precision."""
    found = group_scores(groups, scores, relevant)
    columns = {
        "mrr": found.reciprocal_ranks,
        "accuracy_at_1": found.first_right,
        "map": found.average_precisions,
    }
    return {name: float(column.mean()) if len(column) else 0.0 for name, column in columns.items()}


def retrieval_ranks(queries: np.ndarray, candidates: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[Q] which place, from 1, the right candidate of each query has by the product of their vectors, [Q, W] and
    [C, W]. Among equal ones it is the last."""
    ranks = np.empty(len(queries), np.int64)
    for begin in range(0, len(queries), QUERIES):
        part = slice(begin, begin + QUERIES)
        scores = queries[part] @ candidates.T
        own = scores[np.arange(len(scores)), right[part]]
        ranks[part] = (scores >= own[:, None]).sum(1)
    return ranks
