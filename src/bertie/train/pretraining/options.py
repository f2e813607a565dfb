"""Defines the options of a pre-training run, which are stored with it and compared when it is resumed."""

from typing import Any

from pydantic import Field, model_validator

from bertie.data.data_schedule import Curriculum, Phase, Ramp
from bertie.nn.products.choice import Precision
from bertie.spec import Spec
from bertie.train.budget import AnyBudget
from bertie.train.learning.optimizer import AdamWSpec, AnyOptimizer
from bertie.train.learning.schedule import AnySchedule, Linear
from bertie.train.loop import CLIP

MICRO_TOKENS = 4096


class PretrainOptions(Spec):
    budget: AnyBudget
    seed: int = Field(default=0, ge=0)
    length: int = Field(default=128, ge=8)  # tokens a row; with a curriculum, of evaluation rows
    curriculum: Curriculum | None = None  # several lengths, one after another
    batch_tokens: int = Field(default=4096, ge=1)  # tokens a step
    ramp: Ramp | None = None  # smaller steps at the start
    micro_tokens: int = Field(default=MICRO_TOKENS, ge=1)  # tokens computed at once
    precision: Precision = "float32"
    static_masks: int | None = Field(default=None, ge=1)  # masks of each sample, in turn; None: always new ones
    optimizer: AnyOptimizer = AdamWSpec()
    clip: float = Field(default=CLIP, gt=0)  # the largest norm of all gradients together
    schedule: AnySchedule = Linear()
    save_every: int = Field(default=200, ge=1)  # steps
    keep: int = Field(default=2, ge=1)  # checkpoints, beside the best
    held_out: int = Field(default=100, ge=0)  # one in so many documents; 0: none, and no evaluation
    eval_every: int = Field(default=200, ge=1)
    eval_rows: int = Field(default=256, ge=1)
    log_every: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _rises(self) -> "PretrainOptions":
        if self.ramp is not None and self.ramp.begin > self.batch_tokens:
            raise ValueError(f"a ramp from {self.ramp.begin:,} tokens does not rise to {self.batch_tokens:,}")
        return self

    @property
    def patience(self) -> int | None:
        """None: pre-training does not stop early."""
        return None

    @property
    def adversary(self) -> None:
        """None: pre-training has no adversary."""
        return None

    @property
    def learning(self) -> None:
        """None: all weights learn at one rate."""
        return None

    @property
    def lengths(self) -> Curriculum:
        """The lengths of rows, always as a curriculum."""
        return self.curriculum or Curriculum(phases=(Phase(share=1, length=self.length),))


def differences(before: Any, now: Any, name: str = "", sides: tuple[str, str] = ("before", "now")) -> list[str]:
    """Lists what differs between two JSON values, as "name: old before, new now"."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = dict.fromkeys([*before, *now])
        return [
            difference
            for key in names
            for difference in differences(before.get(key), now.get(key), f"{name}.{key}" if name else key, sides)
        ]
    return [] if before == now else [f"{name}: {before!r} {sides[0]}, {now!r} {sides[1]}"]
