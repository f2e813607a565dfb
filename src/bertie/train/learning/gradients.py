"""The ordinary step: runs every micro-batch forward and backward and adds up the gradients."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from bertie.batch import Batch
from bertie.models.model import Model
from bertie.objectives.loss_report import LossReport
from bertie.train.distribution import Ranks


def add_gradients(
    model: Model, micros: Sequence[Batch], forward: Callable[[Batch], LossReport], ranks: Ranks
) -> tuple[LossReport, Mapping[str, Tensor]]:
    """Returns the report of this rank's micro-batches, and the counts of the whole step that losses are divided by."""
    reports: Iterable[LossReport] = map(forward, micros)  # each runs when it is asked for
    counts = known_counts(model, micros)
    if counts is None:  # then all graphs must be kept until the last count is known, which costs memory
        reports = list(reports)
        counts = {name: figure.count for name, figure in sum(reports, LossReport()).losses.items()}
    if ranks.size > 1:
        counts = ranks.sum_counts(counts)
    total = LossReport()
    for number, report in enumerate(reports):
        loss = report.loss(counts)
        auxiliary = model.auxiliary_loss() if number == len(micros) - 1 else None  # once a step
        (loss if auxiliary is None else loss + auxiliary / ranks.size).backward()
        total = total + report.detached()
    return total, counts


def known_counts(model: Model, micros: Sequence[Batch]) -> Mapping[str, Tensor] | None:
    """The counts of a step's losses, where every objective has `counts(batch)`. None where one has not, and for a
    single micro-batch, whose own counts are those of the step."""
    if len(micros) < 2 or not all(getattr(objective, "counts", None) for objective in model.recipe.objectives):
        return None
    counts: dict[str, int] = {}
    for micro in micros:
        for objective in model.objectives_of(micro):
            for name, count in objective.counts(micro).items():  # type: ignore[attr-defined]
                counts[objective.prefix + name] = counts.get(objective.prefix + name, 0) + count
    return {name: torch.tensor(count) for name, count in counts.items()}
