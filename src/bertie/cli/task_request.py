"""The words of `finetune`, `evaluate` and `predict` enter; a task, rows and their columns leave."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from bertie.cli.app import console
from bertie.cli.choices import check
from bertie.data.rows import Rows, guess_columns, open_rows
from bertie.data.rows.gathered_rows import gathered
from bertie.data.rows.opening import KINDS
from bertie.errors import CapabilityError, SpecError
from bertie.models.pretrained import Pretrained
from bertie.nn.crf import CRFSpec
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Aspects, Classify, MultiLabel, Pair
from bertie.tasks.siamese import Siamese
from bertie.tasks.siamese_rows import WAYS
from bertie.tasks.similarity import Similarity
from bertie.tasks.spacing import Spacing
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task, Values
from bertie.train.task_data import Labelled

TASKS: dict[str, Callable[[], Task]] = {
    "classify": Classify,
    "aspects": Aspects,
    "pair": Pair,
    "similarity": Similarity,
    "tag": Tagging,
    "spaces": Spacing,
    "answer": Answering,
    "choice": Choice,
    "rank": Rank,
}
BELONGS = {  # options that say something of one task alone
    "multi": "classify",
    "crf": "tag",
    "aspect": "aspects",
    "chinese": "answer",
    "stride": "answer",
    "longest_answer": "answer",
    "siamese": "similarity",
    "loss": "similarity",
    "sizes": "similarity",
}
TASK_LENGTHS = {"answer": 384}  # tokens of a row where it is not said; a passage needs more than a sentence
LENGTH = 128


def new_task(name: str, given: Mapping[str, Any]) -> Task:
    """`given` are the options of BELONGS; what is None or empty was not given."""
    for option, owner in BELONGS.items():
        if given.get(option) and name != owner:
            raise SpecError(f"--{option.replace('_', '-')} belongs to the task {owner} alone")
    match name:
        case "classify" if given.get("multi"):
            return MultiLabel()
        case "similarity":
            return siamese_of(given) if given.get("siamese") else similarity_of(given)
        case "tag":
            return Tagging(crf=CRFSpec() if given.get("crf") else None)
        case "aspects":
            if not given.get("aspect"):
                raise SpecError("the columns of the labels are not said", hint="give --aspect COLUMN, once for each")
            return Aspects(aspects=dict.fromkeys(given["aspect"], ()))
        case "answer":
            fields = {"stride": given.get("stride"), "longest": given.get("longest_answer")}
            answering = Answering(language="chinese") if given.get("chinese") else Answering()
            return answering.replace(**{name: value for name, value in fields.items() if value})
        case _:
            return TASKS[name]()


def siamese_of(given: Mapping[str, Any]) -> Siamese:
    """--siamese, --loss and --sizes"""
    if given.get("loss"):
        check("loss", given["loss"], WAYS)
    sizes = [word.strip() for word in (given.get("sizes") or "").split(",") if word.strip()]
    if not all(size.isdecimal() for size in sizes):
        raise SpecError(f"--sizes {given['sizes']!r} are no sizes", hint="like --sizes 256,128,64")
    return Siamese.parse({"criterion": given.get("loss"), "sizes": list(map(int, sizes))}, where="bertie finetune")


def similarity_of(given: Mapping[str, Any]) -> Similarity:
    if idle := next((option for option in ("loss", "sizes") if given.get(option)), None):
        raise SpecError(f"--{idle} says nothing without --siamese", hint=f"give --siamese, or leave out --{idle}")
    return Similarity()


@dataclass(frozen=True)
class FileLook:
    """What a file's name and content do not tell: its kind, and whether a table begins with its columns' names."""

    format: str | None = None
    header: bool | None = None


FORMAT = typer.Option(None, help=f"Of the files, where it is not guessed right: {', '.join(KINDS)}.")
HEADER = typer.Option(None, "--header/--no-header", help="Whether csv and tsv begin with names of columns; guessed.")


def open_labelled(
    task: Task,
    paths: Sequence[str | Path],
    named: Mapping[str, str],
    look: FileLook = FileLook(),
    *,
    targets: bool = True,
) -> Labelled:
    """What was guessed is told. Without `targets` rows need none."""
    format = look.format or ("lines" if isinstance(task, Spacing) and all(map(is_plain, paths)) else None)
    rows = open_rows(paths, format, header=look.header)
    if "candidates" in task.roles:
        rows, named = gathered(rows, "candidates", task.roles["candidates"], named)
    for notice in rows.notices:
        say(notice)
    if strange := next((role for role in named if role not in task.roles), None):
        raise SpecError(f"there is no role {strange!r} in this task", hint=f"it has {', '.join(task.roles)}")
    wanted = {role: names for role, names in task.roles.items() if wants(task, role, rows, named, targets)}
    guess = guess_columns(rows, wanted, named)
    for reason in guess.reasons:
        say(reason)
    columns = dict(guess.columns)
    if isinstance(task, Aspects) and targets:
        for aspect in task.aspects:
            if aspect not in rows.columns:
                raise SpecError(
                    f"there is no column {aspect!r}", where=rows.name, hint=f"it has {', '.join(rows.columns)}"
                )
            columns[aspect] = aspect
    return Labelled(rows, columns)


def is_plain(path: str | Path) -> bool:
    """A file of running text, by its name."""
    return Path(path).name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".txt")


def wants(task: Task, role: str, rows: Rows, named: Mapping[str, str], targets: bool) -> bool:
    if role in named:
        return True
    if role in task.targets and not targets:
        return False
    if role in task.optional:
        if role == "other" and getattr(task, "pair", None) is False:  # as in training
            return False
        usual = {name.lower() for name in task.roles[role]}
        return any(column.lower() in usual for column in rows.columns if column not in named.values())
    return True


def values_on_the_line(task: Task, texts: Sequence[str]) -> list[Values]:
    """Rows with texts in the order of the task's roles; candidates may be many, and are a row each in a ranking."""
    roles = [role for role in task.roles if role not in task.targets]
    if isinstance(task, Rank) and len(texts) > 2:
        return [{"text": texts[0], "other": candidate} for candidate in texts[1:]]
    if roles[-1] == "candidates" and len(texts) >= len(roles):
        texts = [*texts[: len(roles) - 1], list(texts[len(roles) - 1 :])]  # type: ignore[list-item]
    least = len([role for role in roles if role not in task.optional])
    if not least <= len(texts) <= len(roles):
        asked = ", ".join(f"[{role}]" if role in task.optional else role for role in roles)
        raise SpecError(f"the task asks for {asked}; {len(texts)} texts were given")
    return [dict(zip(roles, texts, strict=False))]


def tell_unmeasured(task: Task, rows: Labelled) -> None:
    """Columns of held-out rows that are not looked at."""
    for role, reason in task.unmeasured(rows.columns).items():
        say(f"{rows.rows.name}: the column {rows.columns[role]!r} is not looked at: {reason}")


def column_names(words: Sequence[str]) -> dict[str, str]:
    """--column ROLE=NAME"""
    named = {}
    for word in words:
        role, sign, column = word.partition("=")
        if not sign or not role or not column:
            raise SpecError(f"--column {word!r} is not of the form ROLE=NAME", hint="like --column text=review")
        named[role] = column
    return named


def task_of(pretrained: Pretrained, where: str, name: str | None = None) -> Task:
    """The task that a folder was trained for, or the named one of several."""
    tasks: dict[str, Task] = {one.kind: one for one in pretrained.recipe.objectives if isinstance(one, Task)}
    if not tasks:
        raise CapabilityError("was not trained for a task", where=where, hint="train it with bertie finetune")
    if name is not None:
        check("task", name, tasks)
    elif len(tasks) > 1:
        raise SpecError(
            "was trained for several tasks", where=where, hint=f"choose one with --task: {', '.join(tasks)}"
        )
    found = tasks[name] if name is not None else next(iter(tasks.values()))
    settings = pretrained.settings
    if (
        isinstance(found, Siamese)
        and settings is not None
        and (settings.prompt or (settings.projection is not None and found.dense is None))
    ):
        what = "its vectors are made with a dense layer or a prompt, which the task does not know"
        raise CapabilityError(what, where=where, hint="compare the vectors that bertie embed writes")
    return found


def length_of(pretrained: Pretrained, given: int | None) -> int:
    """As in training, where it is not given."""
    length = given or int(pretrained.card.get("length", LENGTH))
    return length if pretrained.limit is None else min(length, pretrained.limit)


def say(told: str) -> None:
    console.print(told, markup=False, highlight=False, soft_wrap=True)
