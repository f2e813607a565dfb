"""Reports what a batch cost and how well it was predicted, as sums and counts.

Sums and counts of ranks and micro-batches add exactly; only the final figures are divided.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertie.devices import fetched


@dataclass(frozen=True)
class Figure:
    """A sum, its count, and the weight of its mean in the whole loss."""

    sum: Tensor
    count: Tensor
    weight: float = 1.0

    @classmethod
    def over(cls, values: Tensor, weight: float = 1.0) -> "Figure":
        return cls(values.sum(), torch.tensor(values.numel()), weight)

    def __add__(self, other: "Figure") -> "Figure":
        return Figure(self.sum + other.sum, self.count + other.count, self.weight)

    @property
    def mean(self) -> Tensor:
        return self.sum / self.count.clamp(min=1)


@dataclass(frozen=True)
class LossReport:
    """`losses` are minimised, each as a mean over its own count; `metrics` are only reported."""

    losses: Mapping[str, Figure] = field(default_factory=dict)
    metrics: Mapping[str, Figure] = field(default_factory=dict)

    def __add__(self, other: "LossReport") -> "LossReport":
        return LossReport(_add(self.losses, other.losses), _add(self.metrics, other.metrics))

    def loss(self, counts: Mapping[str, Tensor] | None = None) -> Tensor:
        """Returns the weighted sum of mean losses. `counts` are the denominators of a whole step: all ranks, all
        micro-batches."""
        divided = [
            figure.weight * figure.sum / (figure.count if counts is None else counts[name]).clamp(min=1)
            for name, figure in self.losses.items()
        ]
        return torch.stack(divided).sum() if divided else torch.zeros(())

    def prefixed(self, prefix: str) -> "LossReport":
        """Returns the same figures under names that start with `prefix`."""
        if not prefix:
            return self
        losses, metrics = ({prefix + name: one for name, one in all_.items()} for all_ in (self.losses, self.metrics))
        return LossReport(losses, metrics)

    def detached(self) -> "LossReport":
        """Returns the same numbers without their autograd graph."""
        return LossReport(
            {name: Figure(figure.sum.detach(), figure.count, figure.weight) for name, figure in self.losses.items()},
            {name: Figure(figure.sum.detach(), figure.count, figure.weight) for name, figure in self.metrics.items()},
        )

    def fetched(self) -> "LossReport":
        """Returns the same numbers on the CPU, without their autograd graph; a GPU is waited for once."""
        figures = [*self.losses.values(), *self.metrics.values()]
        sums = iter(fetched([figure.sum.detach() for figure in figures] + [figure.count for figure in figures]))
        found = [(figure, next(sums)) for figure in figures]
        made = iter([Figure(total, next(sums), figure.weight) for figure, total in found])
        losses = {name: next(made) for name in self.losses}
        return LossReport(losses, {name: next(made) for name in self.metrics})

    def means(self) -> dict[str, float]:
        return {name: float(figure.mean.detach()) for name, figure in {**self.losses, **self.metrics}.items()}


def _add(left: Mapping[str, Figure], right: Mapping[str, Figure]) -> dict[str, Figure]:
    added = dict(left)
    for name, figure in right.items():
        added[name] = added[name] + figure if name in added else figure
    return added
