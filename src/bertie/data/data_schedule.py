"""The schedule of a run through its data: finds the place of the next step and its rows by how much of the run is done.

A curriculum makes rows longer from phase to phase, and a ramp makes batches larger at the beginning. Both go by the
share of the run that is done, so they hold for runs measured in steps, in tokens or by the clock. Together they are a
table of stages. A place is all that is to be saved: its rows are found without walking there.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field, model_validator

from bertie.data.batching import TokenBudget
from bertie.data.epoch_plan import EpochPlan, SampleKey
from bertie.data.samples.sample_protocols import Samples
from bertie.spec import Spec

STAIRS = 32  # a ramp climbs in so many: between two of them what comes next is known, and can be made ahead
TOLERANCE = 1e-9  # of shares: 0.3 of 10 steps is 3 steps, whatever floating point makes of it


class Phase(Spec):
    """A share of the whole run, and the length of rows in it."""

    share: float = Field(gt=0, le=1)
    length: int = Field(ge=8)


class Curriculum(Spec):
    """Lengths one after another: most of the run short, the last of it long."""

    phases: tuple[Phase, ...] = (Phase(share=0.9, length=128), Phase(share=0.1, length=512))

    @model_validator(mode="after")
    def _whole(self) -> "Curriculum":
        if abs(sum(phase.share for phase in self.phases) - 1) > TOLERANCE:
            raise ValueError("the shares of the phases must add up to 1")
        return self

    def begins(self) -> list[float]:
        """The share of the run before each phase."""
        return [0.0, *np.cumsum([phase.share for phase in self.phases[:-1]]).tolist()]


class Ramp(Spec):
    """The tokens of a step grow from `begin` to the whole batch over the first `share` of the run."""

    begin: int = Field(ge=1)
    share: float = Field(default=0.1, gt=0, le=1)


class Stage(NamedTuple):
    begin: float  # the share of the run before it
    phase: int
    tokens: int  # of a step at most


class Cursor(NamedTuple):
    """Where the data of a step are."""

    phase: int
    position: int  # in the phase's endless text, in tokens
    tokens: int  # of the step at most


def stages_of(curriculum: Curriculum, batch_tokens: int, ramp: Ramp | None = None) -> tuple[Stage, ...]:
    stairs = [(0.0, batch_tokens)]
    if ramp is not None:
        climb = batch_tokens - ramp.begin
        stairs = [(ramp.share * n / STAIRS, ramp.begin + climb * n // STAIRS) for n in range(STAIRS + 1)]
    phases = curriculum.begins()
    begins = sorted({*phases, *(begin for begin, _ in stairs)})
    return tuple(
        Stage(begin, _last(phases, begin), stairs[_last([share for share, _ in stairs], begin)][1]) for begin in begins
    )


def _last(begins: Sequence[float], progress: float) -> int:
    """The number of the last one that has begun."""
    return int(np.searchsorted(begins, progress + TOLERANCE, side="right")) - 1


class DataSchedule:
    """`samples` are those of each phase."""

    def __init__(self, stages: Sequence[Stage], samples: Sequence[Samples], seed: int):
        self.stages = stages
        self.plans = []
        for phase, numbered in enumerate(samples):
            smallest = min(stage.tokens for stage in stages if stage.phase == phase)
            self.plans.append(EpochPlan(numbered, TokenBudget(tokens=smallest), seed))

    def enter(self, place: Cursor | None, progress: float) -> Cursor:
        """The place of a step that begins after this share of the run; `place` is where the step before it ended."""
        stage = self.stages[_last([stage.begin for stage in self.stages], progress)]
        position = place.position if place is not None and place.phase == stage.phase else 0
        return Cursor(stage.phase, position, stage.tokens)

    def after(self, place: Cursor, num_steps: int = 1) -> Cursor:
        """Where so many steps end that begin here, if nothing changes meanwhile."""
        return place._replace(position=place.position + num_steps * self._window(place))

    def seek(self, step: int, num_steps: int) -> Cursor:
        """The place of any step of a run of so many steps."""
        place, at = self.enter(None, 0.0), 0
        for stage in self.stages:
            begin = min(step, math.ceil((stage.begin - TOLERANCE) * num_steps))
            place, at = self.enter(self.after(place, begin - at), begin / num_steps), begin
        return self.after(place, step - at)

    def rows(self, place: Cursor) -> list[SampleKey]:
        return self.plans[place.phase].between(place.position, place.position + self._window(place))

    def _window(self, place: Cursor) -> int:
        return self.plans[place.phase].window_of(place.tokens)
