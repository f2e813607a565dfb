"""Measures a task model on held-out examples: the task's metrics and its loss, from one pass."""

from collections.abc import Mapping, Sequence

from bertie.models.answering_rows import Outputs, outputs_of, run_examples
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.tasks.task import Answer, Example, Task


class TaskEvaluation:
    """`baseline` is the task's main metric for the most frequent answer. `last_answers` are those of the model that was
    measured last, by the task as it is now; None before."""

    keeps_best = True

    def __init__(self, task: Task, examples: Sequence[Example], baseline: float | None = None):
        self.task, self.examples, self.baseline = task, examples, baseline
        self.last_answers: list[Answer] | None = None

    def __call__(self, model: Model) -> dict[str, float]:
        report, outputs = run_examples(model, self.task, self.examples)
        self.last_answers = self._answers(outputs)
        scores = self.task.score(self.last_answers, [example.gold for example in self.examples])
        return {"loss": float(report.loss()), **scores}

    def answers(self, model: Model) -> list[Answer]:
        return self._answers(outputs_of(model, self.task, self.examples))

    def _answers(self, outputs: Sequence[Outputs]) -> list[Answer]:
        return [self.task.answer(example, one) for example, one in zip(self.examples, outputs, strict=True)]

    def rank(self, figures: Mapping[str, float]) -> float:
        return -figures[self.task.main]

    def warning(self, figures: Mapping[str, float]) -> str | None:
        if self.baseline is None or figures[self.task.main] > self.baseline:
            return None
        return f"no better than always giving the most frequent answer ({self.task.main} {self.baseline:.4f})"

    def tuned(self, model: Model) -> Recipe:
        if type(self.task).tuned is not Task.tuned:  # most tasks have nothing to tune
            self.task = self.task.tuned(self.examples, outputs_of(model, self.task, self.examples))
            self.last_answers = None
        others = [one for one in model.recipe.objectives if one.name != self.task.name]
        return model.recipe.replace(objectives=(*others, self.task))
