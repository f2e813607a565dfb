"""Held-out examples of a task enter, figures leave: the task's metrics and its loss."""

from collections.abc import Mapping, Sequence

import torch

from bertie.models.answering_rows import BATCH_TOKENS, outputs_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.objective import mark
from bertie.tasks.task import Answer, Example, Task
from bertie.train.instances import batches_of
from bertie.train.loop import total


class TaskEvaluation:
    """`baseline` is what the task's main figure would be if the model had learned nothing but frequencies."""

    keeps_best = True

    def __init__(self, task: Task, examples: Sequence[Example], baseline: float | None = None):
        self.task, self.examples, self.baseline = task, examples, baseline

    def __call__(self, model: Model) -> dict[str, float]:
        was_training = model.training
        model.eval()
        with torch.inference_mode():
            # The model may have other tasks, too. Batches are not kept: stored features would fill the memory.
            batches = batches_of([sample for one in self.examples for sample in one.samples], BATCH_TOKENS)
            report = total([model.loss(mark(batch, self.task)) for batch in batches])
        model.train(was_training)
        scores = self.task.score(self.answers(model), [example.gold for example in self.examples])
        return {"loss": float(report.loss()), **scores}

    def answers(self, model: Model) -> list[Answer]:
        outputs = outputs_of(model, self.task, self.examples)
        return [self.task.answer(example, one) for example, one in zip(self.examples, outputs, strict=True)]

    def rank(self, figures: Mapping[str, float]) -> float:
        return -figures[self.task.main]

    def warning(self, figures: Mapping[str, float]) -> str | None:
        if self.baseline is None or figures[self.task.main] > self.baseline:
            return None
        return f"not better than answering by frequency alone ({self.task.main} {self.baseline:.4f})"

    def tuned(self, model: Model) -> Recipe:
        self.task = self.task.tuned(self.examples, outputs_of(model, self.task, self.examples))
        others = [one for one in model.recipe.objectives if one.kind != self.task.kind]
        return model.recipe.replace(objectives=(*others, self.task))
