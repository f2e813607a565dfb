"""Schedules: the number of a step enters, the share of the highest learning rate that it takes leaves.

Pure functions of the step, so that there is nothing to save. The first step is 0. All schedules climb evenly during the
warm-up and reach the whole rate at its last step.
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from bertie.spec import Spec


class WarmUp(Spec):
    warmup: int = Field(default=0, ge=0)  # steps

    def factor(self, step: int, num_steps: int) -> float:
        """From 0 to 1. `num_steps` is how many steps there will be."""
        if not 0 <= step < num_steps:
            raise ValueError(f"step {step} of {num_steps}")
        if step < self.warmup:
            return (step + 1) / self.warmup
        return self.fall(step, num_steps)

    def fall(self, step: int, num_steps: int) -> float:
        """After the warm-up."""
        raise NotImplementedError

    def _left(self, step: int, num_steps: int) -> float:
        """The share of the steps after the warm-up that is still to come; never 0, as such a step would be wasted."""
        return (num_steps - step) / (num_steps - self.warmup)


class Linear(WarmUp):
    """Evenly down towards 0 at the end."""

    kind: Literal["linear"] = "linear"

    def fall(self, step: int, num_steps: int) -> float:
        return self._left(step, num_steps)


class Cosine(WarmUp):
    """Half a wave down: slow, quick, slow."""

    kind: Literal["cosine"] = "cosine"

    def fall(self, step: int, num_steps: int) -> float:
        return (1 - math.cos(math.pi * self._left(step, num_steps))) / 2


class InverseRoot(WarmUp):
    """With one over the root of the step: does not depend on how many steps there will be."""

    kind: Literal["inverse-root"] = "inverse-root"

    def fall(self, step: int, num_steps: int) -> float:
        return math.sqrt(max(self.warmup, 1) / (step + 1))


class Constant(WarmUp):
    kind: Literal["constant"] = "constant"

    def fall(self, step: int, num_steps: int) -> float:
        return 1.0


AnySchedule = Annotated[Linear | Cosine | InverseRoot | Constant, Field(discriminator="kind")]
SCHEDULES = {"linear": Linear, "cosine": Cosine, "inverse-root": InverseRoot, "constant": Constant}
