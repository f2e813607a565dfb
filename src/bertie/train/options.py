"""What decides a run: options enter by name, and leave as one value that is written down and compared."""

from typing import Any

from pydantic import Field, model_validator

from bertie.data.course import Curriculum, Phase, Ramp
from bertie.spec import Spec
from bertie.train.budget import AnyBudget
from bertie.train.loop import Precision
from bertie.train.optimiser import AdamWSpec
from bertie.train.schedule import AnySchedule, Linear

MICRO_TOKENS = 4096


class PretrainOptions(Spec):
    budget: AnyBudget
    seed: int = Field(default=0, ge=0)
    length: int = Field(default=128, ge=8)  # of a row, in tokens; under a curriculum of the rows that are measured on
    curriculum: Curriculum | None = None  # several lengths, one after another
    batch_tokens: int = Field(default=4096, ge=1)  # of a step
    ramp: Ramp | None = None  # smaller steps at the beginning
    micro_tokens: int = Field(default=MICRO_TOKENS, ge=1)  # computed at once
    precision: Precision = "float32"
    static_masks: int | None = Field(default=None, ge=1)  # so many masks of each sample, in turn; None: ever new ones
    adamw: AdamWSpec = AdamWSpec()
    schedule: AnySchedule = Linear()
    save_every: int = Field(default=200, ge=1)  # in steps, as all of these
    keep: int = Field(default=2, ge=1)  # checkpoints, beside the best
    held_out: int = Field(default=100, ge=0)  # one in so many documents; 0: none, and no evaluation
    eval_every: int = Field(default=200, ge=1)
    eval_rows: int = Field(default=256, ge=1)
    log_every: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _climbs(self) -> "PretrainOptions":
        if self.ramp is not None and self.ramp.begin > self.batch_tokens:
            raise ValueError(f"a ramp from {self.ramp.begin:,} tokens does not climb to {self.batch_tokens:,}")
        return self

    @property
    def patience(self) -> int | None:
        """Pre-training goes on to its end."""
        return None

    @property
    def adversary(self) -> None:
        """And knows no adversary."""
        return None

    @property
    def learning(self) -> None:
        """All weights learn, at one rate."""
        return None

    @property
    def lengths(self) -> Curriculum:
        """Always as a curriculum."""
        return self.curriculum or Curriculum(phases=(Phase(share=1, length=self.length),))


def differences(before: Any, now: Any, name: str = "", told: tuple[str, str] = ("before", "now")) -> list[str]:
    """What differs between two JSON values, as "name: old before, new now"."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = dict.fromkeys([*before, *now])
        return [
            difference
            for key in names
            for difference in differences(before.get(key), now.get(key), f"{name}.{key}" if name else key, told)
        ]
    return [] if before == now else [f"{name}: {before!r} {told[0]}, {now!r} {told[1]}"]
