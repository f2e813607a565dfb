"""Intervals of whole tasks: every quick way scores a draw as the task itself would."""

from typing import Any

import numpy as np
import pytest

from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify
from bertie.tasks.metrics.intervals import interval_of_mean
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.reports import task_intervals
from bertie.tasks.reports.task_intervals import measured_metrics
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Task

NUM_ROWS = 60
TAGS = ("O", "B-PER", "I-PER", "B-LOC")


def rows_of(task: Task) -> tuple[list[Answer], list[Any]]:
    rng = np.random.default_rng(3)

    def words(choices: tuple[str, ...], size: int) -> list[str]:
        return [str(word) for word in rng.choice(choices, size)]

    answers: list[Answer] = []
    gold: list[Any] = []
    wanted: Any
    for number in range(NUM_ROWS):
        match task:
            case Classify():
                wanted = words(task.labels, 1)[0]
                answer: Answer = {"label": words(task.labels, 1)[0]}
            case MultiLabel():
                wanted = [label for label in task.labels if rng.random() < 0.4]
                answer = {"labels": [label for label in task.labels if rng.random() < 0.4]}
            case Aspects():
                wanted, answer = ({name: words(labels, 1)[0] for name, labels in task.aspects.items()} for _ in "ab")
            case Tagging():
                wanted, answer = words(task.tags, 5), {"tags": words(task.tags, 5)}
            case Answering():
                wanted = [] if number % 3 == 0 and task.unanswerable else ["the red cat"]
                answer = {"text": ["", "red cat", "dog"][rng.integers(3)]}
            case Choice():
                wanted, answer = int(rng.integers(4)), {"choice": int(rng.integers(4))}
            case Rank():
                wanted, answer = (f"query {number // 4}", int(number % 4 == 1)), {"score": float(rng.normal())}
            case _:
                wanted, answer = float(rng.normal()), {"score": float(rng.normal())}
        gold.append(wanted)
        answers.append(answer)
    return answers, gold


TASKS = [
    Classify(labels=("no", "yes")),
    Classify(labels=("a", "b", "c")),
    MultiLabel(labels=("a", "b", "c")),
    Aspects(aspects={"price": ("bad", "good"), "food": ("bad", "fair", "good")}),
    Tagging(tags=TAGS, scheme="IOB2"),
    Tagging(tags=("DET", "NOUN", "VERB")),
    Answering(),
    Answering(unanswerable=True),
    Answering(language="chinese"),
    Choice(),
    Rank(),
    Similarity(),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_draw_is_scored_as_the_task_scores_it(task: Task) -> None:
    answers, gold = rows_of(task)
    drawing = task.resample(answers, gold)
    assert set(drawing.score(np.arange(drawing.size))) >= set(task.score(answers, gold))
    for seed in range(3):
        numbers = np.random.default_rng(seed).integers(0, drawing.size, drawing.size)
        if isinstance(task, Rank):  # all four rows of a query are drawn together, as a query of their own
            drawn = [(copy, number * 4 + row) for copy, number in enumerate(numbers.tolist()) for row in range(4)]
            queries = [(f"copy {copy}", gold[row][1]) for copy, row in drawn]
            expected = task.score([answers[row] for _, row in drawn], queries)
        else:
            expected = task.score([answers[n] for n in numbers.tolist()], [gold[n] for n in numbers.tolist()])
        found = drawing.score(numbers)
        assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_every_metric_has_its_interval(task: Task) -> None:
    answers, gold = rows_of(task)
    found = measured_metrics(task, answers, gold, seconds=60)
    assert found.values == task.score(answers, gold)
    assert list(found.intervals) == list(found.values)
    assert (found.num_rounds, found.unit) == (1000, "queries" if isinstance(task, Rank) else "rows")
    assert all(one.low <= one.value <= one.high for one in found.intervals.values() if one.value not in (0.0, 1.0))


def test_accuracy_has_the_interval_of_a_mean() -> None:
    answers, gold = rows_of(TASKS[0])
    found = measured_metrics(TASKS[0], answers, gold).intervals["accuracy"]
    expected = interval_of_mean([answer["label"] == one for answer, one in zip(answers, gold, strict=True)])
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_no_time_no_interval() -> None:
    found = measured_metrics(Similarity(), *rows_of(Similarity()), seconds=-1)
    assert found.intervals == {} and found.num_rounds == 0
    assert found.values["spearman"] == pytest.approx(Similarity().score(*rows_of(Similarity()))["spearman"])


def test_few_draws_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(task_intervals, "monotonic", lambda: next(clock))
    found = measured_metrics(Similarity(), *rows_of(Similarity()), seconds=150)
    assert found.num_rounds == 150 and found.intervals


def test_nothing_is_measured_on_nothing() -> None:
    assert measured_metrics(Rank(), [], []).values == {}
    # A query without a relevant candidate says nothing of a ranking.
    found = measured_metrics(Rank(), [{"score": 1.0}], [("query", 0)])
    assert found.intervals == {} and found.values["mrr"] == 0.0


def test_a_label_that_nobody_says_has_no_f1() -> None:
    task = Classify(labels=("no", "yes"))
    found = measured_metrics(task, [{"label": "no"}] * 3, ["no"] * 3)
    assert (found.intervals["f1"].high, found.intervals["accuracy"].low) == (0.0, 1.0)
