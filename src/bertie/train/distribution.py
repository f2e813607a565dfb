"""Ranks: processes that train one model together. Combines the numbers and gradients of all ranks.

Each rank takes its share of a step's rows, divides its losses by the counts of all, and adds its gradients to the
others'. So the step is exactly the one that a single process would take. `torchrun` starts them.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bertie.devices import CPU, process_group
from bertie.nn.memory import Memory
from bertie.objectives.loss_report import Figure, LossReport

BUCKET = 1 << 23  # numbers that are sent together
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Ranks:
    """This process among `size`. A single process keeps its own numbers."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the one that writes and reports."""
        return self.rank == 0

    def sum_counts(self, counts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if self.size == 1:
            return dict(counts)
        names = sorted(counts)
        total = torch.stack([counts[name].double() for name in names])
        dist.all_reduce(total)
        return dict(zip(names, total, strict=True))

    def sum_gradients(self, model: nn.Module) -> None:
        """Adds up the gradients of all ranks, in place. A parameter that only other ranks used counts as 0 here."""
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        met = torch.tensor([parameter.grad is not None for parameter in learning], dtype=torch.int32)
        dist.all_reduce(met, dist.ReduceOp.MAX)
        gradients = []
        for parameter, anywhere in zip(learning, met.tolist(), strict=True):
            if anywhere:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                gradients.append(parameter.grad)
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            dist.all_reduce(flat)
            parts = flat.split([gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def sum_report(self, report: LossReport) -> LossReport:
        """The figures of all ranks together."""
        figures = [*report.losses.values(), *report.metrics.values()]
        total = torch.stack([torch.stack([figure.sum.double(), figure.count.double()]) for figure in figures])
        dist.all_reduce(total)
        summed = iter([Figure(pair[0], pair[1], figure.weight) for pair, figure in zip(total, figures, strict=True)])
        losses = {name: next(summed) for name in report.losses}
        return LossReport(losses, {name: next(summed) for name in report.metrics})

    def gather(self, rows: Tensor) -> list[Tensor]:
        """[n, ...] of every rank, in their order; n may differ from rank to rank."""
        if self.size == 1:
            return [rows]
        counts = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([len(rows)]))
        sizes = [int(count) for count in counts]
        equal = torch.cat([rows, rows.new_zeros(max(sizes) - len(rows), *rows.shape[1:])])
        found = [torch.empty_like(equal) for _ in range(self.size)]
        dist.all_gather(found, equal)
        return [part[:size] for part, size in zip(found, sizes, strict=True)]

    def combine(self, number: Number, how: Literal["sum", "max", "first"]) -> Number:
        """One number for all ranks. The first rank's is for what depends on the clock, as clocks differ."""
        if self.size == 1:
            return number
        found = torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else torch.int64)
        if how == "first":
            dist.broadcast(found, 0)
        else:
            dist.all_reduce(found, dist.ReduceOp.SUM if how == "sum" else dist.ReduceOp.MAX)
        return type(number)(found.item())

    def wait(self) -> None:
        """Until all ranks are here."""
        dist.barrier()


ALONE = Ranks()


def gather_memory(own: Memory, ranks: Ranks) -> Memory:
    """The memory of a step's rows, in the order of the rows: of n ranks each has every n-th."""
    found = {name: ranks.gather(tensor.flatten(end_dim=0)) for name, tensor in own.tensors().items()}
    parts = [Memory.restored({name: found[name][rank] for name in found}) for rank in range(ranks.size)]
    starts = [sum(part.num_rows for part in parts[:rank]) for rank in range(ranks.size)]
    joined = Memory.join(parts)
    return joined.rows(starts[row % ranks.size] + row // ranks.size for row in range(joined.num_rows))


@contextmanager
def joined(device: torch.device = CPU) -> Iterator[Ranks]:
    """The ranks that `torchrun` started; without it, this process alone. Each computes on its own device."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ALONE
        return
    dist.init_process_group(process_group(device))
    try:
        yield Ranks(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()


def _buckets(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    for gradient in gradients:
        if bucket and sum(each.numel() for each in bucket) + gradient.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(gradient)
    if bucket:
        yield bucket
