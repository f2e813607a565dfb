"""Where a task model is most wrong: examples and answers enter, the worst mistakes leave, in words."""

import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Aspects, Classify, MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.spacing import Spacing
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Example, Task

MOST = 100
SHOWN_CHARACTERS = 300
SHOWN_WORDS = 12  # of a sentence, with wrong tags
NOTHING = "(none)"
BETWEEN = {"candidates": " | "}  # by role; words have a space


@dataclass(frozen=True)
class Mistake:
    where: str
    texts: Mapping[str, str]  # by role, shortened and marked so
    gold: str
    told: str
    wrongness: float


@dataclass(frozen=True)
class Mistakes:
    worst: tuple[Mistake, ...]
    num_wrong: int  # rows that are not wholly right


def find_mistakes(task: Task, examples: Sequence[Example], answers: Sequence[Answer], most: int = MOST) -> Mistakes:
    """The worst first; of equally bad ones the earlier row."""
    wrong = [task.wrongness(answer, example.gold) for example, answer in zip(examples, answers, strict=True)]
    numbers = [number for number, wrongness in enumerate(wrong) if wrongness > 0]
    worst = heapq.nsmallest(most, numbers, key=lambda number: (-wrong[number], number))
    return Mistakes(tuple(_mistake(task, examples[n], answers[n], wrong[n]) for n in worst), len(numbers))


def _mistake(task: Task, example: Example, answer: Answer, wrongness: float) -> Mistake:
    roles = [role for role in task.roles if role in example.values and role not in task.targets]
    texts = {role: excerpt(_text(role, example), _place(task, role, example, answer)) for role in roles}
    gold, told = (excerpt(words) for words in in_words(task, answer, example.gold))
    return Mistake(example.where, texts, gold, told, wrongness)


def excerpt(text: str, at: int = 0, most: int = SHOWN_CHARACTERS) -> str:
    """The part around a place, with a mark where something is missing and how much it is."""
    if len(text) <= most:
        return text
    begin = max(0, min(at - most // 2, len(text) - most))
    before, after = "… " if begin else "", " …" if begin + most < len(text) else ""
    return f"{before}{text[begin : begin + most]}{after} [{len(text) - most:,} of {len(text):,} characters not shown]"


def _text(role: str, example: Example) -> str:
    """As the user wrote it; of what is no text, such as a list, as the task understood it."""
    value = example.values[role]
    return value if isinstance(value, str) else joined(example.told.get(role, value), BETWEEN.get(role, " "))


def joined(value: Any, between: str = " ") -> str:
    """A list as a line; words of one character stand without spaces."""
    if not isinstance(value, list | tuple):
        return str(value)
    words = [str(word) for word in value]
    return ("" if between == " " and all(len(word) == 1 for word in words) else between).join(words)


def _place(task: Task, role: str, example: Example, answer: Answer) -> int:
    """Where the answer stands in a passage; elsewhere the beginning is shown."""
    if not isinstance(task, Answering) or role != "passage":
        return 0
    if answer["start"] >= 0:
        return int(answer["start"])
    return max(0, str(example.values[role]).find(example.gold[0])) if example.gold else 0


def in_words(task: Task, answer: Answer, gold: Any) -> tuple[str, str]:
    """Gold and what was told. Of many labels in one row only those that differ."""
    match task:
        case Classify():
            return gold, _sure(answer["label"], answer.get("probability"))
        case MultiLabel():
            return ", ".join(gold) or NOTHING, ", ".join(answer["labels"]) or NOTHING
        case Aspects():
            names = [aspect for aspect in task.aspects if answer[aspect] != gold[aspect]]
            return ", ".join(f"{name}: {gold[name]}" for name in names), ", ".join(
                f"{name}: {answer[name]}" for name in names
            )
        case Tagging():
            return _tags(answer["words"], gold, answer["tags"]), _tags(answer["words"], answer["tags"], gold)
        case Spacing():
            return gold, answer["text"]
        case Similarity():
            return f"{gold:.4g}", f"{answer['score']:.4g}"
        case Answering():
            return " | ".join(dict.fromkeys(gold)) or NOTHING, answer["text"] or NOTHING
        case Choice():
            return f"candidate {gold}", f"candidate {answer['choice']}: {answer['candidate']}"
        case Rank():
            return "relevant" if gold[1] else "not relevant", f"score {answer['score']:.4g}"
        case _:
            return str(gold), json.dumps(answer, ensure_ascii=False, default=str)


def _sure(label: str, probability: float | None) -> str:
    return label if probability is None else f"{label} ({probability:.0%})"


def _tags(words: Sequence[str], tags: Sequence[str], others: Sequence[str]) -> str:
    """The words whose tags are not the same, with the first of the two."""
    differ = [f"{word}/{tag}" for word, tag, other in zip(words, tags, others, strict=True) if tag != other]
    more = f" and {len(differ) - SHOWN_WORDS:,} more" if len(differ) > SHOWN_WORDS else ""
    return "  ".join(differ[:SHOWN_WORDS]) + more
