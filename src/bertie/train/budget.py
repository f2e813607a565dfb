"""Budgets: turn what a run has done into the share of the run that is done. Schedule and data follow that share.

Steps and tokens are counted, so such a run continues exactly where it was stopped. The clock differs each time.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from bertie.spec import Spec


class Done(NamedTuple):
    """Over all sessions of a run, without what a kill undid."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0  # of everything: steps, evaluations, checkpoints


class Steps(Spec):
    kind: Literal["steps"] = "steps"
    steps: int = Field(ge=0)  # 0: nothing is trained
    exact: ClassVar[bool] = True

    def progress(self, done: Done) -> float:
        """From 0; the run ends at 1."""
        return done.steps / self.steps if self.steps else 1.0


class Tokens(Spec):
    kind: Literal["tokens"] = "tokens"
    tokens: int = Field(ge=1)
    exact: ClassVar[bool] = True

    def progress(self, done: Done) -> float:
        return done.tokens / self.tokens


class Time(Spec):
    kind: Literal["time"] = "time"
    seconds: float = Field(gt=0)
    exact: ClassVar[bool] = False

    def progress(self, done: Done) -> float:
        return done.seconds / self.seconds


AnyBudget = Annotated[Steps | Tokens | Time, Field(discriminator="kind")]
