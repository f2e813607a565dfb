"""The words of `finetune`, `evaluate` and `predict` enter; a task, rows and their columns leave."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bertie.cli.app import console
from bertie.data.rows import Rows, guess_columns, open_rows
from bertie.errors import CapabilityError, SpecError
from bertie.models.pretrained import Pretrained
from bertie.nn.crf import CRFSpec
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Aspects, Classify, MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task
from bertie.train.finetuning import Labelled

TASKS: dict[str, type[Task]] = {
    "classify": Classify,
    "aspects": Aspects,
    "pair": Classify,
    "similarity": Similarity,
    "tag": Tagging,
    "answer": Answering,
    "choice": Choice,
    "rank": Rank,
}


def new_task(name: str, *, multi: bool, crf: bool, aspects: Sequence[str], chinese: bool) -> Task:
    if multi and name != "classify":
        raise SpecError("--multi belongs to classify alone")
    if crf and name != "tag":
        raise SpecError("--crf belongs to tag alone")
    if (name == "aspects") != bool(aspects):
        raise SpecError("the task aspects needs the columns of its labels", hint="name them with --aspect, once for each")
    if multi:
        return MultiLabel()
    if name == "tag":
        return Tagging(crf=CRFSpec() if crf else None)
    if name == "aspects":
        return Aspects(aspects={aspect: () for aspect in aspects})
    if name == "answer":
        return Answering(language="chinese" if chinese else "english")
    return TASKS[name]()


def open_labelled(
    task: Task, paths: Sequence[str | Path], named: Mapping[str, str], *, pair: bool = False, targets: bool = True
) -> Labelled:
    """What was guessed is told. Without `targets` rows need none."""
    rows = open_rows(paths)
    for notice in rows.notices:
        say(notice)
    wanted = {role: names for role, names in task.roles.items() if wants(task, role, rows, named, pair, targets)}
    guess = guess_columns(rows, wanted, named)
    for reason in guess.reasons:
        say(reason)
    columns = dict(guess.columns)
    if isinstance(task, Aspects):
        columns |= {aspect: aspect for aspect in task.aspects if targets}
    return Labelled(rows, columns)


def wants(task: Task, role: str, rows: Rows, named: Mapping[str, str], pair: bool, targets: bool) -> bool:
    if role in named:
        return True
    if role in task.targets:
        return targets
    if role in task.optional:
        usual = {name.lower() for name in task.roles[role]}
        return (role == "other" and pair) or any(column.lower() in usual for column in rows.columns)
    return True


def column_names(words: Sequence[str]) -> dict[str, str]:
    """--column ROLE=NAME"""
    named = {}
    for word in words:
        role, sign, column = word.partition("=")
        if not sign or not role or not column:
            raise SpecError(f"--column {word!r} is not of the form ROLE=NAME", hint="like --column text=review")
        named[role] = column
    return named


def task_of(pretrained: Pretrained, where: str) -> Task:
    """The task that a folder was trained for."""
    task = next((one for one in pretrained.recipe.objectives if isinstance(one, Task)), None)
    if task is None:
        raise CapabilityError(f"{where} was not trained for a task", hint="train it with bertie finetune")
    return task


def say(told: str) -> None:
    console.print(told, markup=False, highlight=False, soft_wrap=True)
