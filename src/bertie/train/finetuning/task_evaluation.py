"""Measures a task model on held-out examples: the task's metrics and its loss, from one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bertie.models.answering_rows import answers_of, outputs_of, run_examples
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.tasks.task import Answer, Example, Task


@dataclass
class TaskEvaluation:
    task: Task
    examples: Sequence[Example]
    baseline: float | None = None  # the task's main metric for the most frequent answer
    # Those of the model that was measured last, by the task as it is now; None before.
    last_answers: list[Answer] | None = None
    keeps_best = True

    def __call__(self, model: Model) -> dict[str, float]:
        report, outputs = run_examples(model, self.task, self.examples)
        both = zip(self.examples, outputs, strict=True)
        self.last_answers = [self.task.answer(example, one) for example, one in both]
        scores = self.task.score(self.last_answers, [example.gold for example in self.examples])
        return {"loss": float(report.loss()), **scores}

    def answers(self, model: Model) -> list[Answer]:
        """Without gold, and without measuring anything."""
        return [answer for _, answer in answers_of(model, self.task, self.examples)]

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
