"""One step: a model and the batches of a step enter, the model learns from them, and what the step cost leaves.

A step is one or more micro-batches. Every loss is divided by its count in the whole step, so that micro-batches are
exactly one batch, and so are those of many ranks. Randomness inside a step comes from (seed, step, rank) alone: a step
does not know what came before it but through the weights and the optimiser.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from bertie.batch import Batch
from bertie.errors import SpecError, UserError
from bertie.memory import release_memory
from bertie.models.model import Model
from bertie.objectives.report import LossReport
from bertie.train.adversarial import AnyAdversary, PlainStep, Replay
from bertie.train.distribution import ALONE, Ranks
from bertie.train.optimiser import AdamWSpec, clip_gradients, set_rate
from bertie.train.rows_together import comparing, learn_together

Micros = Sequence[Batch]
Precision = Literal["float32", "bfloat16"]  # of matrix products; weights, sums and losses are float32
DTYPES: dict[Precision, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}


# Steps of ever other sizes leave gaps in the heap that no tensor fills: without this the memory of a run creeps up.
RELEASE_EVERY = 10
FEWER_ROWS = "choose a smaller --batch, or leave out --adversarial"


class NotFiniteError(UserError):
    """A loss or a gradient is no longer a number."""

    def __init__(self, step: int, figure: str, kept: Path | None = None):
        """`kept` is where the last state that was good lies."""
        self.step, self.figure = step, figure  # the step from 0
        hint = "begin anew" if kept is None else f"go on from {kept} in a new run"
        super().__init__(f"{figure} is not finite at step {step + 1:,}", hint=f"{hint}, with a lower --lr")


@dataclass(frozen=True)
class StepResult:
    step: int  # from 0; it is done
    report: LossReport  # of the whole step
    num_tokens: int
    rate: float  # the learning rate
    norm: float  # of all gradients, before clipping


def take_step(
    model: Model,
    micros: Micros,
    optimiser: torch.optim.Optimizer,
    adamw: AdamWSpec,
    factor: float,
    *,
    step: int,
    seed: int = 0,
    precision: Precision = "float32",
    ranks: Ranks = ALONE,
    adversary: AnyAdversary | None = None,
) -> StepResult:
    """One step at a share of the learning rate. Where something is not finite, it is not taken."""
    model.train()
    rate = adamw.rate * factor
    set_rate(optimiser, rate)
    torch.manual_seed(step_seed(seed, step, ranks.rank))
    optimiser.zero_grad()
    report = ranks.sum_report(accumulate(model, micros, precision, ranks, adversary))
    refuse_not_finite(step, report)
    norm = float(clip_gradients(model, adamw.clip))
    if not math.isfinite(norm):
        raise NotFiniteError(step, "the gradient")
    optimiser.step()
    model.after_step()
    if step % RELEASE_EVERY == 0:
        release_memory()
    return StepResult(step, report, ranks.total(count_tokens(micros)), rate, norm)


def count_tokens(micros: Micros) -> int:
    return sum(len(micro.tensor("tokens")) for micro in micros)


def accumulate(
    model: Model,
    micros: Micros,
    precision: Precision = "float32",
    ranks: Ranks = ALONE,
    adversary: AnyAdversary | None = None,
) -> LossReport:
    """Adds the gradients of a whole step, those of all ranks, and returns the report of this rank."""
    replays: list[Replay] = []
    precise = partial(torch.autocast, "cpu", DTYPES[precision], enabled=precision != "float32")
    if (objective := comparing(model, micros, ranks)) is not None:
        if adversary is not None:
            raise SpecError("over several passes an adversary cannot move rows that are compared", hint=FEWER_ROWS)
        report = learn_together(model, objective, micros, precise, ranks)
        ranks.sum_gradients(model)
        return report

    def loss_of(micro: Batch) -> LossReport:
        with precise():
            return model.loss(micro)

    def plain_pass(micro: Batch) -> LossReport:
        if adversary is None:
            return loss_of(micro)
        replays.append(Replay(model.encoder.embeddings, micro))
        return replays[-1].run(loss_of)

    counts = known_counts(model, micros)
    # Who cannot tell the counts beforehand pays with memory: all graphs then live until the last count is known.
    ahead = [plain_pass(micro) for micro in micros] if counts is None else []
    if counts is None:
        counts = {name: figure.count for name, figure in total(ahead).losses.items()}
    counts = ranks.sum_counts(counts)
    reports = []
    for number, micro in enumerate(micros):
        report = ahead[number] if ahead else plain_pass(micro)
        loss = report.loss(counts)
        auxiliary = model.auxiliary_loss() if number == len(micros) - 1 else None  # once a step
        (loss if auxiliary is None else loss + auxiliary / ranks.size).backward()
        reports.append(report.detached())
    if adversary is not None:
        reports += adversary.learn(PlainStep(model, replays, loss_of, counts, ranks))
    ranks.sum_gradients(model)
    return total(reports)


def known_counts(model: Model, micros: Micros) -> Mapping[str, Tensor] | None:
    """The counts of a step's losses, where every objective has `counts(batch)`. None where one does not, and for a
    single micro-batch, whose own counts are all."""
    if len(micros) < 2 or not all(getattr(objective, "counts", None) for objective in model.recipe.objectives):
        return None
    counts: dict[str, int] = {}
    for micro in micros:
        for objective in model.objectives_of(micro):
            for name, count in objective.counts(micro).items():  # type: ignore[attr-defined]
                counts[name] = counts.get(name, 0) + count
    return {name: torch.tensor(count) for name, count in counts.items()}


def total(reports: Sequence[LossReport]) -> LossReport:
    whole = LossReport()
    for report in reports:
        whole = whole + report
    return whole


def refuse_not_finite(step: int, report: LossReport) -> None:
    for name, figure in report.losses.items():
        if not math.isfinite(float(figure.sum)):
            raise NotFiniteError(step, f"the loss {name}")


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """Seeds of neighbouring steps have nothing in common."""
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0])
