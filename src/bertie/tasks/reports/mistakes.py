"""Finds the worst mistakes of a task model, in words."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertie.tasks.task import Answer, Example, Task

MOST = 100
SHOWN_CHARACTERS = 300
BETWEEN = {"candidates": " | "}  # by role; words have a space


@dataclass(frozen=True)
class Mistake:
    where: str
    texts: Mapping[str, str]  # by role, shortened and marked so
    gold: str
    predicted: str
    error_severity: float


@dataclass(frozen=True)
class Mistakes:
    worst: tuple[Mistake, ...]
    num_wrong: int  # rows that are not completely right


def find_mistakes(task: Task, examples: Sequence[Example], answers: Sequence[Answer], most: int = MOST) -> Mistakes:
    """The worst first; of equally bad ones the earlier row."""
    wrong = [task.error_severity(answer, example.gold) for example, answer in zip(examples, answers, strict=True)]
    numbers = [number for number, error_severity in enumerate(wrong) if error_severity > 0]
    worst = heapq.nsmallest(most, numbers, key=lambda number: (-wrong[number], number))
    mistakes = []
    for number in worst:
        example, answer = examples[number], answers[number]
        roles = [role for role in task.roles if role in example.values and role not in task.targets]
        texts = {}
        for role in roles:
            # As the user wrote it; what is not a text, such as a list, as the task read it.
            value = example.values[role]
            text = value if isinstance(value, str) else joined(example.context.get(role, value), BETWEEN.get(role, " "))
            texts[role] = excerpt(text, task.excerpt_start(role, example, answer))
        gold, predicted = map(excerpt, task.describe(answer, example.gold))
        mistakes.append(Mistake(example.where, texts, gold, predicted, wrong[number]))
    return Mistakes(tuple(mistakes), len(numbers))


def excerpt(text: str, at: int = 0, most: int = SHOWN_CHARACTERS) -> str:
    """The part around a character, which shows where something is missing and how much."""
    if len(text) <= most:
        return text
    begin = max(0, min(at - most // 2, len(text) - most))
    before, after = "… " if begin else "", " …" if begin + most < len(text) else ""
    return f"{before}{text[begin : begin + most]}{after} [{len(text) - most:,} of {len(text):,} characters not shown]"


def joined(value: Any, between: str = " ") -> str:
    """A list as a line; words of one character are joined without spaces."""
    if not isinstance(value, list | tuple):
        return str(value)
    words = [str(word) for word in value]
    return ("" if between == " " and all(len(word) == 1 for word in words) else between).join(words)
