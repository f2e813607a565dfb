"""Takes one training step: the gradients of its micro-batches, then the optimizer.

Every loss is divided by its count in the whole step, so that several micro-batches give exactly the gradients of one
batch, and so do those of several ranks. The random numbers of a step depend on (seed, step, rank) alone: nothing links
it to earlier steps except the weights, the optimizer's state and, where rows continue, the memory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bertie import devices
from bertie.batch import Batch
from bertie.devices import device_of
from bertie.errors import SpecError, UserError
from bertie.freed_memory import release_memory
from bertie.models.model import Model
from bertie.nn.memory import Memory
from bertie.nn.products.choice import Precision, products_in
from bertie.objectives.loss_report import LossReport
from bertie.train.distribution import ALONE, Ranks
from bertie.train.learning.adversarial import AnyAdversary, adversarial_step
from bertie.train.learning.grad_cache import cached_contrastive_step, contrastive_objective
from bertie.train.learning.gradients import add_gradients
from bertie.train.learning.optimizer import Optimizer

Micros = Sequence[Batch]
DTYPES: dict[Precision, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CLIP = 1.0  # the largest norm of all gradients together

# Steps of different sizes leave gaps in the heap that no tensor fills: without this the memory of a run creeps up.
RELEASE_EVERY = 10


class NotFiniteError(UserError):
    """A loss or a gradient is not a finite number."""

    def __init__(self, step: int, figure: str, kept: Path | None = None):
        """`kept` is the folder of the last good model."""
        self.step, self.figure = step, figure  # the step from 0
        hint = "start over" if kept is None else f"continue from {kept} in a new run"
        super().__init__(f"{figure} is not finite at step {step + 1:,}", hint=f"{hint}, with a lower `lr`")


@dataclass(frozen=True)
class StepResult:
    step: int  # that was taken, from 0
    report: LossReport  # of the whole step
    num_tokens: int
    rate: float  # the learning rate
    norm: float  # of all gradients, before clipping
    memory: Memory | None = None  # of this rank's rows, where it is to be kept


def take_step(
    model: Model,
    micros: Micros,
    optimizer: Optimizer,
    factor: float,
    *,
    step: int,
    seed: int = 0,
    clip: float = CLIP,
    precision: Precision = "float32",
    ranks: Ranks = ALONE,
    adversary: AnyAdversary | None = None,
    memory: Memory | None = None,
    keep_memory: bool = False,
) -> StepResult:
    """Takes one step at a share of the learning rate; none where something is not finite. Batches follow the model to
    its device; the numbers of the result are on the CPU.

    `memory` is of the rows that those of this step continue; with `keep_memory` the result has that of these rows.
    """
    model.train()
    rate = optimizer.set_rate(factor)
    torch.manual_seed(step_seed(seed, step, ranks.rank))
    optimizer.zero_grad()
    kept: list[Memory] | None = [] if keep_memory else None
    micros = [micro.to(device_of(model)) for micro in micros]
    with products_in(precision):
        report = accumulate(model, micros, precision, ranks, adversary, memory, kept).fetched()
    if ranks.size > 1:
        report = ranks.sum_report(report)
    for name, figure in report.losses.items():
        if not math.isfinite(float(figure.sum)):
            raise NotFiniteError(step, f"the loss {name}")
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), clip).cpu())
    if not math.isfinite(norm):
        raise NotFiniteError(step, "the gradient")
    optimizer.step()
    model.after_step()
    if step % RELEASE_EVERY == 0:
        release_memory()
    num_tokens = ranks.combine(count_tokens(micros), "sum")
    return StepResult(step, report, num_tokens, rate, norm, Memory.join(kept) if kept else None)


def count_tokens(micros: Micros) -> int:
    return sum(micro.num_tokens for micro in micros)


def accumulate(
    model: Model,
    micros: Micros,
    precision: Precision = "float32",
    ranks: Ranks = ALONE,
    adversary: AnyAdversary | None = None,
    memory: Memory | None = None,
    kept: list[Memory] | None = None,
) -> LossReport:
    """Adds up the gradients of a whole step, over all ranks, and returns the report of this rank. The rows continue
    those of `memory`; the memory of each micro-batch is put into `kept`, where that is given."""
    autocast = partial(devices.autocast, device_of(model), DTYPES[precision])

    def forward(micro: Batch) -> LossReport:
        with autocast():
            if kept is None:
                return model.loss(micro)
            first = sum(done.num_rows for done in kept)
            own = None if memory is None else memory.rows(range(first, first + micro.ragged("tokens").num_rows))
            report, after = model.loss_and_memory(micro, own)
        if after is not None:
            kept.append(after)
        return report

    objective = contrastive_objective(model, micros, ranks)
    if kept is not None and (objective is not None or adversary is not None):
        raise SpecError("contrastive and adversarial training cannot continue rows from step to step")
    if objective is not None and adversary is not None:
        hint = "choose a smaller `batch`, or leave out `adversarial`"
        raise SpecError("adversarial training cannot compare rows across several micro-batches", hint=hint)
    if objective is not None:
        report = cached_contrastive_step(model, objective, micros, autocast, ranks)
    elif adversary is not None:
        report = adversarial_step(model, micros, forward, ranks, adversary)
    else:
        report, _ = add_gradients(model, micros, forward, ranks)
    if ranks.size > 1:
        ranks.sum_gradients(model)
    return report


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """Seeds of neighbouring steps have nothing in common."""
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0])
