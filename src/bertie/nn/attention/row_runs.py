"""Runs: groups neighbouring rows into rectangles for a kernel, with little padding.

Rows of equal length need no padding at all and no copy. Rows of nearly equal length are padded together when that costs
less than another call of the kernel.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from bertie.batch import Ragged
from bertie.devices import CPU

CALL_COST = 1500  # one more kernel call, in query-key pairs; measured, and flat around this value
PADDING_COST = 1.4  # a padded rectangle copies its rows in and out and reads a mask


@dataclass(frozen=True)
class Stretch:
    """One side of a run: neighbouring rows, flat."""

    start: int  # flat index of the first token
    lengths: tuple[int, ...]
    device: torch.device = CPU

    @cached_property
    def longest(self) -> int:
        return max(self.lengths)

    @cached_property
    def total(self) -> int:
        return sum(self.lengths)

    @cached_property
    def rows(self) -> Ragged:
        return Ragged(torch.empty(self.total, 0, device=self.device), torch.tensor(self.lengths))

    @cached_property
    def exists(self) -> Tensor:
        """[B, L], True where a rectangle over these rows holds a token."""
        return torch.arange(self.longest, device=self.device) < self.rows.lengths_here[:, None]

    def rectangle(self, states: Tensor) -> Tensor:
        """Flat states [T, N, D] of a whole side -> [B, N, L, D] of this run; a view when nothing is padded."""
        part = states[self.start : self.start + self.total]
        return self.rows.with_values(part).pad().transpose(1, 2)

    def flat(self, rectangle: Tensor) -> Tensor:
        """[B, N, L, D] -> [T, N, D]"""
        return self.rows.unpad(rectangle.transpose(1, 2)).values


@dataclass(frozen=True)
class Run:
    query: Stretch
    key: Stretch

    @cached_property
    def padded_keys(self) -> Tensor | None:
        """[B, 1, 1, Lk], True for keys that exist; None when all do."""
        full = self.key.total == self.key.longest * len(self.key.lengths)
        return None if full else self.key.exists[:, None, None]


def plan_runs(query: Ragged, key: Ragged) -> list[Run]:
    """Rows are taken in order; each joins the run before it where that is cheaper than a call of its own."""
    bounds = _bounds(query.sizes, key.sizes)
    return [Run(query=query_part, key=key_part) for query_part, key_part in zip(
        _stretches(query, bounds), _stretches(key, bounds), strict=True
    )]  # fmt: skip


def _bounds(query: list[int], key: list[int]) -> list[int]:
    """The first row of each run, and the number of rows."""
    bounds: list[int] = []
    shape, count, cost = (-1, -1), 0, 0.0  # of the run so far
    for row, pair in enumerate(zip(query, key, strict=True)):
        own_cost = CALL_COST + pair[0] * pair[1]
        if pair == shape and cost == CALL_COST + count * pair[0] * pair[1]:
            joined_shape, joined_cost = shape, cost + pair[0] * pair[1]
        else:
            joined_shape = (max(shape[0], pair[0]), max(shape[1], pair[1]))
            joined_cost = CALL_COST + PADDING_COST * (count + 1) * joined_shape[0] * joined_shape[1]
        if bounds and joined_cost <= cost + own_cost:
            shape, count, cost = joined_shape, count + 1, joined_cost
        else:
            bounds.append(row)
            shape, count, cost = pair, 1, float(own_cost)
    return [*bounds, len(query)]


def _stretches(rows: Ragged, bounds: list[int]) -> list[Stretch]:
    stretches, start = [], 0
    for first, end in pairwise(bounds):
        stretches.append(Stretch(start, tuple(rows.sizes[first:end]), rows.device))
        start += stretches[-1].total
    return stretches
