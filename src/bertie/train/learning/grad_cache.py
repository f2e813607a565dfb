"""Takes a step whose loss compares all its rows, in the memory of one micro-batch.

Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, 2021. The vectors of all rows are
computed without a graph, and those of other ranks are gathered. The loss gives the gradient of each vector. Then every
micro-batch is run once more, with the same dropout, and carries the gradients of its own vectors back. So the step is
exactly that of one batch on one rank.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from bertie.batch import Batch, Field, Ragged
from bertie.devices import RandomState, device_of
from bertie.models.model import Model
from bertie.objectives.loss_report import LossReport
from bertie.objectives.objective import Objective
from bertie.train.distribution import Ranks

VECTORS = "vectors"  # of what an objective compares: the field that has a gradient


def contrastive_objective(model: Model, micros: Sequence[Batch], ranks: Ranks) -> Objective | None:
    """The objective that compares rows of several passes; None where every pass has all rows that its loss needs."""
    if len(micros) == 1 and ranks.size == 1:
        return None
    return next((one for one in model.objectives_of(micros[0]) if one.contrastive), None)


def cached_contrastive_step(
    model: Model,
    objective: Any,
    micros: Sequence[Batch],
    precision: Callable[[], AbstractContextManager[Any]],
    ranks: Ranks,
) -> LossReport:
    """Adds the gradients of this rank's rows. The report is of the rows of all ranks."""
    owned = model.heads[objective.name]

    def embedded(micro: Batch) -> Batch:
        with precision():
            found: Batch = objective.embed_rows(owned, model.encoder, micro)
            return found

    begun, ahead = [], []
    with torch.no_grad():
        for micro in micros:
            begun.append(RandomState.now(device_of(model)))
            ahead.append(embedded(micro))
    whole, place = gathered(joined(ahead), ranks)
    vectors = whole.ragged(VECTORS)
    leaves = vectors.values.detach().requires_grad_()
    report: LossReport = objective.contrastive_loss(owned, whole.with_fields({VECTORS: vectors.with_values(leaves)}))
    report = report.prefixed(objective.prefix)
    report.loss().backward()
    assert leaves.grad is not None
    for number, (micro, state) in enumerate(zip(micros, begun, strict=True)):
        with state.again():
            again = embedded(micro).tensor(VECTORS)
        loss = (again * leaves.grad[place : place + len(again)]).sum()
        place += len(again)
        auxiliary = model.auxiliary_loss() if number == len(micros) - 1 else None  # once a step
        (loss if auxiliary is None else loss + auxiliary / ranks.size).backward()
    return report.detached()


def joined(parts: Sequence[Batch]) -> Batch:
    """The rows of all, one after another."""
    return Batch({name: _joined([part[name] for part in parts]) for name in parts[0].fields})


def gathered(own: Batch, ranks: Ranks) -> tuple[Batch, int]:
    """The rows of all ranks, in their order, and where the vectors of this one begin."""
    if ranks.size == 1:
        return own, 0
    found = {name: ranks.gather(own.tensor(name)) for name in own.fields}
    lengths = {name: ranks.gather(field.lengths) for name, field in own.fields.items() if isinstance(field, Ragged)}
    fields: dict[str, Field] = {
        name: Ragged(torch.cat(values), torch.cat(lengths[name])) if name in lengths else torch.cat(values)
        for name, values in found.items()
    }
    return Batch(fields), sum(map(len, found[VECTORS][: ranks.rank]))


def _joined(parts: Sequence[Field]) -> Field:
    values = torch.cat([part.values if isinstance(part, Ragged) else part for part in parts])
    lengths: list[Tensor] = [part.lengths for part in parts if isinstance(part, Ragged)]
    return Ragged(values, torch.cat(lengths)) if lengths else values
