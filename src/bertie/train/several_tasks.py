"""Several tasks on one encoder: the data of each enter, the steps of all leave, each step of one task.

In an epoch every task gives all its rows, so that tasks come as often as their size says. The seed decides the order.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bertie.batch import Batch
from bertie.data.course import Place
from bertie.data.plan import Permutation
from bertie.data.samples.source import generator
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.objective import mark
from bertie.train.task_data import TaskData
from bertie.train.task_evaluation import TaskEvaluation


class SeveralTasks:
    """What a run asks of its data."""

    def __init__(self, parts: Sequence[TaskData], batch_rows: int, seed: int):
        self.parts, self.seed = parts, seed
        self.steps = [steps_of(part.examples.num_samples, batch_rows) for part in parts]  # of an epoch
        self.begins = np.cumsum([0, *self.steps])
        self.course = parts[0].course
        measured = {part.examples.task.kind: part.evaluation for part in parts}
        known = {kind: evaluation for kind, evaluation in measured.items() if evaluation is not None}
        self.evaluation = SeveralEvaluations(known) if known else None
        self.notes = [note for part in parts for note in part.notes]
        self._order = lru_cache(2)(self._new_order)

    @property
    def card(self) -> Mapping[str, Any]:
        return self.parts[0].card

    @property
    def beginning(self) -> Place:
        return self.course.enter(None, 0.0)

    def instances(self, place: Place) -> list[Batch]:
        number, position = self.which(place.position)
        part = self.parts[number]
        return [mark(batch, part.examples.task) for batch in part.instances(place._replace(position=position))]

    def take_counts(self) -> dict[str, int]:
        return {
            f"{part.examples.task.kind}.{name}": count
            for part in self.parts
            for name, count in part.take_counts().items()
        }

    def told(self, counts: Mapping[str, int]) -> list[str]:
        own = {part.examples.task.kind: part for part in self.parts}
        return [f"{kind}: {told}" for kind, part in own.items() for told in part.told(_own(kind, counts))]

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
    """Figures have the kind of their task before them; a model is as good as its tasks on average."""

    keeps_best = True

    def __init__(self, parts: Mapping[str, TaskEvaluation]):
        self.parts = parts

    def __call__(self, model: Model) -> dict[str, float]:
        each = {kind: part(model) for kind, part in self.parts.items()}
        told = {f"{kind}.{name}": value for kind, figures in each.items() for name, value in figures.items()}
        return {"loss": sum(figures["loss"] for figures in each.values()), **told}

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
