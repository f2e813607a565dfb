"""What decides a fine-tuning run, and its data as a run asks for them."""

import math
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from bertie.batch import Batch
from bertie.data.course import Place
from bertie.spec import Spec
from bertie.train.budget import Steps
from bertie.train.instances import split_rows
from bertie.train.loop import Precision
from bertie.train.optimiser import AdamWSpec
from bertie.train.schedule import AnySchedule, Linear
from bertie.train.task_data import Examples, Policy, RowCourse
from bertie.train.task_evaluation import TaskEvaluation

MICRO_TOKENS = 4096


class FinetuneOptions(Spec):
    budget: Steps
    epochs: float = Field(gt=0)
    seed: int = Field(default=0, ge=0)
    length: int = Field(default=128, ge=8)
    batch_rows: int = Field(default=32, ge=1)
    micro_tokens: int = Field(default=MICRO_TOKENS, ge=1)
    precision: Precision = "float32"
    adamw: AdamWSpec = AdamWSpec(rate=5e-5)
    schedule: AnySchedule = Linear(warmup=0.1)
    policy: Policy = "refuse"
    save_every: int = Field(ge=1)
    keep: int = Field(default=1, ge=1)
    eval_every: int = Field(ge=1)
    log_every: int = Field(default=1, ge=1)
    patience: int | None = Field(default=None, ge=1)  # evaluations without a better one, after which the run ends

    @classmethod
    def of_epochs(cls, num_rows: int, epochs: float, batch_rows: int, fields: dict[str, Any]) -> "FinetuneOptions":
        """Evaluates and saves at the end of every epoch."""
        per_epoch = max(1, math.ceil(num_rows / batch_rows))
        steps = max(1, round(epochs * num_rows / batch_rows))
        regular = {"save_every": min(per_epoch, steps), "eval_every": min(per_epoch, steps)}
        return cls.parse(
            {**regular, **fields, "epochs": epochs, "batch_rows": batch_rows, "budget": Steps(steps=steps)},
            where="bertie finetune",
        )


@dataclass(frozen=True)
class TaskData:
    """What a run asks of its data."""

    course: RowCourse
    examples: Examples
    evaluation: TaskEvaluation | None
    micro_tokens: int
    notes: tuple[str, ...] = ()
    rank: int = 0
    num_ranks: int = 1

    @property
    def beginning(self) -> Place:
        return self.course.enter(None, 0.0)

    def instances(self, place: Place) -> list[Batch]:
        keys = self.course.plan.batch(place.position)[self.rank :: self.num_ranks]
        read = (self.examples.example(index) for _, index in keys)
        samples = [sample for example in read if example is not None for sample in example.samples]
        return split_rows(samples, self.micro_tokens)
