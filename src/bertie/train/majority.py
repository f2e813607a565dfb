"""What frequencies alone would get: gold of rows enters, the one answer for every row and its score leave."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice
from bertie.tasks.classification import Aspects, Classify, MultiLabel
from bertie.tasks.metrics.entities import token_accuracy
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Task


@dataclass(frozen=True)
class Majority:
    answer: str  # in words
    metric: str
    score: float


def majority_baseline(task: Task, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
    """The most frequent answer of the rows that were trained on, measured on others by the task's main metric.

    None where no answer can be given without looking at the row, as in ranking. Spans that are never told score 0, so
    of tags it is the accuracy of words.
    """
    if not trained or not measured:
        return None
    if isinstance(task, Tagging):
        tag = "O" if "O" in task.tags else most_frequent(tag for tags in trained for tag in tags)
        return Majority(tag, "accuracy", token_accuracy(measured, [[tag] * len(tags) for tags in measured]))
    if (chosen := _always(task, trained)) is None:
        return None
    told, answer = chosen
    return Majority(told, task.main, task.score([answer] * len(measured), measured)[task.main])


def _always(task: Task, trained: Sequence[Any]) -> tuple[str, Answer] | None:
    match task:
        case Classify():
            label = most_frequent(trained)
            return label, {"label": label}
        case MultiLabel():
            found = [label for labels in trained for label in labels]
            label = most_frequent(found) if found else None
            return label or "no label", {"labels": [label] if label is not None else []}
        case Aspects():
            answer = {aspect: most_frequent(gold[aspect] for gold in trained) for aspect in task.aspects}
            return "the label of each aspect that is most frequent", answer
        case Similarity():
            mean = sum(trained) / len(trained)
            return f"the mean, {mean:.4g}", {"score": mean}
        case Answering() if task.unanswerable:
            return "no answer", {"text": ""}
        case Choice():
            place = most_frequent(trained)
            return f"candidate {place}", {"choice": place}
        case _:
            return None


def most_frequent(values: Iterable[Any]) -> Any:
    """Of equally frequent ones the first in order, whatever the order of the rows."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))
