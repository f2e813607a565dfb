"""Schedules: turn the share of a run that is done into the share of the highest learning rate that a step takes.

Pure functions, so that there is nothing to save, and the same for a run measured in steps, in tokens or by the clock. A
step goes from `begun` to `ended`, shares of the whole run. All schedules rise evenly during the warm-up, which counts
a step when it ends, so that the first step takes some of the rate; what comes after counts it when it begins, so
that the last one does too.
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from bertie.spec import Spec


class WarmUp(Spec):
    warmup: float = Field(default=0.0, ge=0, le=1)  # a share of the run

    def factor(self, begun: float, ended: float) -> float:
        """From 0 to 1."""
        if begun < self.warmup:
            return min(1.0, ended / self.warmup)
        return self.fall(begun, ended)

    def fall(self, begun: float, ended: float) -> float:
        """After the warm-up."""
        raise NotImplementedError

    def _left(self, begun: float) -> float:
        """The share of what follows the warm-up that is still to come."""
        return (1 - begun) / (1 - self.warmup) if self.warmup < 1 else 0.0


class Linear(WarmUp):
    """Evenly down towards 0 at the end."""

    kind: Literal["linear"] = "linear"

    def fall(self, begun: float, ended: float) -> float:
        return self._left(begun)


class Cosine(WarmUp):
    """Half a wave down: slow, quick, slow."""

    kind: Literal["cosine"] = "cosine"

    def fall(self, begun: float, ended: float) -> float:
        return (1 - math.cos(math.pi * self._left(begun))) / 2


class InverseRoot(WarmUp):
    """Falls with one over the root of what is done, in units of the warm-up, or of one step where there is none."""

    kind: Literal["inverse-root"] = "inverse-root"

    def fall(self, begun: float, ended: float) -> float:
        return min(1.0, math.sqrt(max(self.warmup, ended - begun) / ended))


class Constant(WarmUp):
    kind: Literal["constant"] = "constant"

    def fall(self, begun: float, ended: float) -> float:
        return 1.0


AnySchedule = Annotated[Linear | Cosine | InverseRoot | Constant, Field(discriminator="kind")]
SCHEDULES = {"linear": Linear, "cosine": Cosine, "inverse-root": InverseRoot, "constant": Constant}
