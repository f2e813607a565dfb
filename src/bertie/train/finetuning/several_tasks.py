"""Trains several tasks on one encoder; each step is one of one task.

In an epoch every task gives all its rows, so larger tasks have more steps. The seed decides the order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from bertie.batch import Batch
from bertie.data.data_schedule import Cursor
from bertie.data.epoch_plan import Permutation
from bertie.data.samples.sample_protocols import generator
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.train.finetuning.task_data import TaskData
from bertie.train.finetuning.task_evaluation import TaskEvaluation


class SeveralTasks:
    """The `RunSource` of several tasks."""

    rows_continue = False

    def __init__(self, parts: Sequence[TaskData], batch_rows: int, seed: int):
        self.parts, self.seed = parts, seed
        self.steps = [steps_of(part.examples.num_samples, batch_rows) for part in parts]  # of an epoch
        self.begins = np.cumsum([0, *self.steps])
        self.data_schedule = parts[0].data_schedule
        measured = {part.examples.task.name: part.evaluation for part in parts}
        known = {kind: evaluation for kind, evaluation in measured.items() if evaluation is not None}
        self.evaluation = SeveralEvaluations(known) if known else None
        self.notes = [note for part in parts for note in part.notes]
        self._order = lru_cache(2)(self._new_order)

    @property
    def card(self) -> Mapping[str, Any]:
        return self.parts[0].card

    @property
    def start(self) -> Cursor:
        return self.data_schedule.enter(None, 0.0)

    def instances(self, place: Cursor) -> list[Batch]:
        number, position = self.which(place.position)
        part = self.parts[number]
        return [
            replace(batch, only=part.examples.task.name) for batch in part.instances(place._replace(position=position))
        ]

    def take_counts(self) -> dict[str, int]:
        return {
            f"{part.examples.task.name}.{name}": count
            for part in self.parts
            for name, count in part.take_counts().items()
        }

    def describe_counts(self, counts: Mapping[str, int]) -> list[str]:
        own = {part.examples.task.name: part for part in self.parts}
        return [f"{name}: {text}" for name, part in own.items() for text in part.describe_counts(_own(name, counts))]

    def which(self, step: int) -> tuple[int, int]:
        """The task of a step, and which of its own steps it is."""
        epoch, slot = divmod(step, int(self.begins[-1]))
        drawn = int(self._order(epoch)(np.array([slot]))[0])
        number = int(np.searchsorted(self.begins, drawn, side="right")) - 1
        return number, epoch * self.steps[number] + drawn - int(self.begins[number])

    def _new_order(self, epoch: int) -> Permutation:
        return Permutation(int(self.begins[-1]), generator(self.seed, epoch, 0, "tasks"))


def steps_of(num_rows: int, batch_rows: int) -> int:
    return max(1, math.ceil(num_rows / batch_rows))


class SeveralEvaluations:
    """Figures are prefixed with the name of their task; a model is as good as its tasks on average."""

    keeps_best = True

    def __init__(self, parts: Mapping[str, TaskEvaluation]):
        self.parts = parts

    def __call__(self, model: Model) -> dict[str, float]:
        each = {kind: part(model) for kind, part in self.parts.items()}
        named = {f"{kind}.{name}": value for kind, figures in each.items() for name, value in figures.items()}
        return {"loss": sum(figures["loss"] for figures in each.values()), **named}

    def rank(self, figures: Mapping[str, float]) -> float:
        return sum(part.rank(_own(kind, figures)) for kind, part in self.parts.items()) / len(self.parts)

    def warning(self, figures: Mapping[str, float]) -> str | None:
        warnings = {kind: part.warning(_own(kind, figures)) for kind, part in self.parts.items()}
        return "; ".join(f"{kind}: {warning}" for kind, warning in warnings.items() if warning) or None

    def tuned(self, model: Model) -> Recipe:
        for part in self.parts.values():
            model.recipe = part.tuned(model)
        return model.recipe


def _own(kind: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    begin = f"{kind}."
    return {name.removeprefix(begin): value for name, value in figures.items() if name.startswith(begin)}
