"""Measures how a task model's score falls the more words are misspelt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bertie.errors import InputError
from bertie.models.model import Model
from bertie.reporting.chart import Chart, Line
from bertie.reporting.page import section, table
from bertie.reporting.svg_chart import draw_svg
from bertie.tasks.examples import Examples, Policy
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Task
from bertie.text.noise import Noise
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.row_noise import MisspeltRows, RowNoise
from bertie.train.finetuning.task_evaluation import TaskEvaluation

SEED = 0  # of what is misspelt, so that models can be compared


@dataclass(frozen=True)
class NoisePoint:
    """`misspelt` is the share of words that was changed: less than the rate where no table has an ideograph."""

    rate: float
    misspelt: float
    scores: dict[str, float]
    num_cut: int = 0  # rows that were too long

    def as_dict(self) -> dict[str, Any]:
        return {"rate": self.rate, "misspelt": self.misspelt, **self.scores}


@dataclass(frozen=True)
class NoiseCurve:
    metric: str
    points: Sequence[NoisePoint]

    @property
    def chart(self) -> Chart:
        line = [(100 * point.rate, point.scores[self.metric]) for point in self.points]
        return Chart(f"{self.metric.replace('_', ' ')} of misspelt texts", "% of words", [Line(self.metric, line, "o")])

    def rows(self) -> list[tuple[str, ...]]:
        return [(f"{one.rate:.0%}", f"{one.misspelt:.1%}", f"{one.scores[self.metric]:.4f}") for one in self.points]

    def lines(self) -> list[str]:
        """For the terminal, under the chart."""
        head = ("noise", "misspelt", self.metric)
        return ["  ".join(f"{cell:>10}" for cell in row) for row in (head, *self.rows())]

    def section(self) -> Markup:
        """For a page."""
        return section("Misspelt texts", draw_svg(self.chart) + table(("noise", "misspelt", self.metric), self.rows()))


def measure_noise(
    model: Model,
    task: Task,
    rows: Labelled,
    tokenizer: Tokenizer,
    length: int,
    noises: Sequence[Noise],
    policy: Policy = "refuse",
) -> NoiseCurve:
    """Measures the same rows under each noise; a word that two of them misspell is misspelt in the same way."""
    points = []
    for noise in noises:
        change = RowNoise(noise, task, SEED)
        source = Examples(task, MisspeltRows(rows.rows, rows.columns, change), tokenizer, length, policy)
        examples = source.all()
        if not examples:
            raise InputError("no row can be used", where=rows.rows.name)
        answers = TaskEvaluation(task, examples).answers(model)
        scores = task.score(answers, [example.gold for example in examples])
        points.append(
            NoisePoint(noise.rate, change.num_changed / max(1, change.num_words), scores, len(source.num_cut))
        )
    return NoiseCurve(task.main, points)
