"""What decides a run: options enter by name, and leave as one value that is written down and compared."""

from typing import Any

from pydantic import Field, model_validator

from bertie.spec import Spec
from bertie.train.optimiser import AdamWSpec
from bertie.train.schedule import AnySchedule, Linear


class PretrainOptions(Spec):
    steps: int = Field(ge=1)
    seed: int = Field(default=0, ge=0)
    length: int = Field(default=128, ge=8)  # of a row, in tokens
    batch_tokens: int = Field(default=4096, ge=1)  # of a step
    micro_tokens: int = Field(default=4096, ge=1)  # computed at once
    adamw: AdamWSpec = AdamWSpec()
    schedule: AnySchedule = Linear()
    save_every: int = Field(default=200, ge=1)
    keep: int = Field(default=2, ge=1)  # checkpoints, beside the best
    held_out: int = Field(default=100, ge=0)  # one in so many documents; 0: none, and no evaluation
    eval_every: int = Field(default=200, ge=1)
    eval_rows: int = Field(default=256, ge=1)
    log_every: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _warm_up_ends(self) -> "PretrainOptions":
        if self.schedule.warmup > self.steps:
            raise ValueError(f"a warm-up of {self.schedule.warmup:,} steps does not fit into {self.steps:,} steps")
        return self


def differences(before: Any, now: Any, name: str = "") -> list[str]:
    """What differs between two JSON values, as "name: old before, new now"."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = dict.fromkeys([*before, *now])
        return [
            told
            for key in names
            for told in differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
        ]
    return [] if before == now else [f"{name}: {before!r} before, {now!r} now"]
