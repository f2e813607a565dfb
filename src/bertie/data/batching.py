"""Batches: how large they are, rows of similar length together, and the samples of a step as one batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field

from bertie.batch import Batch, Sample, collate
from bertie.data.samples.sample_protocols import Samples, generator
from bertie.spec import Spec


class Rows(Spec):
    """So many rows, whatever their length."""

    kind: Literal["rows"] = "rows"
    rows: int = Field(ge=1)


class TokenBudget(Spec):
    """As many rows as hold so many tokens at most."""

    kind: Literal["tokens"] = "tokens"
    tokens: int = Field(ge=1)


BatchSize = Annotated[Rows | TokenBudget, Field(discriminator="kind")]


def batches_by_length(lengths: np.ndarray, max_tokens: int) -> Iterator[np.ndarray]:
    """Rows of similar length together, longest first, so that memory peaks at once and little is ever padded."""
    lengths = lengths.astype(np.int64, copy=False)
    order = np.argsort(-lengths, kind="stable")
    start = 0
    totals = np.cumsum(lengths[order])
    while start < len(order):
        before = totals[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(totals, before + max_tokens, side="right")))
        yield order[start:end]
        start = end


class StepPlan(Protocol):
    def batch(self, step: int, rank: int = 0, num_ranks: int = 1) -> Sequence[tuple[int, int]]:
        """(epoch, index) of each row."""


class Batches:
    """The batch of any step: `batches[step]`. A pure function, so that any loader with any number of workers, such as
    torch's DataLoader over a range of steps, gives the same."""

    def __init__(
        self,
        samples: Samples,
        plan: StepPlan,
        seed: int,
        prepare: Callable[[Sample, np.random.Generator], Sample] | None = None,
        rank: int = 0,
        num_ranks: int = 1,
    ):
        """`prepare` corrupts a sample with a generator that belongs to the sample alone."""
        self.samples, self.plan, self.seed, self.prepare = samples, plan, seed, prepare
        self.rank, self.num_ranks = rank, num_ranks

    def __getitem__(self, step: int) -> Batch:
        return collate(self.rows(step))

    def rows(self, step: int) -> list[Sample]:
        return [self.row(epoch, index) for epoch, index in self.plan.batch(step, self.rank, self.num_ranks)]

    def row(self, epoch: int, index: int) -> Sample:
        sample = self.samples.sample(self.seed, epoch, index)
        if self.prepare is None:
            return sample
        return self.prepare(sample, generator(self.seed, epoch, index, "corrupt"))
