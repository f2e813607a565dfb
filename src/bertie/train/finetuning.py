"""Fine-tuning: a pretrained model, a task and labelled rows enter, a run folder with a task model leaves.

It is a run like any other: exact resume, checkpoints, logs. What is new is the data, and that the best checkpoint on the
held-out rows is the one that is kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertie.data.rows import Rows
from bertie.errors import InputError, SpecError, TokenizerError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.variant import with_recipe
from bertie.tasks.task import Task, Values
from bertie.train.distribution import ALONE, Ranks
from bertie.train.finetune_data import FinetuneOptions, TaskData
from bertie.train.run import run_in
from bertie.train.task_data import Examples, RowCourse
from bertie.train.task_evaluation import TaskEvaluation

FITTED_ON = 200_000  # rows that tell the labels; more would change nothing


@dataclass(frozen=True)
class Labelled:
    """Rows, and which column plays which role."""

    rows: Rows
    columns: Mapping[str, str]


def fit(task: Task, data: Labelled, seed: int = 0) -> Task:
    """The task with what the training rows tell: labels, tags, the scale of scores."""
    stride = max(1, data.rows.num_rows // FITTED_ON)
    return task.fitted(values_of(data, number) for number in range(0, data.rows.num_rows, stride))


def values_of(data: Labelled, number: int) -> Values:
    row = data.rows.row(number)
    missing = [column for column in data.columns.values() if row.values.get(column) is None]
    if missing:
        raise InputError(f"the column {missing[0]!r} is empty", where=row.where)
    return {role: row.values[column] for role, column in data.columns.items()}


def task_model(pretrained: Pretrained, task: Task, seed: int) -> Model:
    """The encoder as it was, and a new head for the task; heads of earlier training are left behind."""
    return with_recipe(pretrained.model, pretrained.recipe.replace(objectives=(task,)), seed)


def finetune(
    folder: str | Path,
    pretrained: Pretrained,
    task: Task,
    train: Labelled,
    dev: Labelled | None,
    options: FinetuneOptions,
    *,
    config: str | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
    ranks: Ranks = ALONE,
) -> dict[str, Any]:
    tokenizer = pretrained.tokenizer
    if tokenizer is None:
        raise TokenizerError("the folder has no tokenizer", hint="put its tokenizer.json there")
    if pretrained.limit is not None and options.length > pretrained.limit:
        raise SpecError(f"rows of {options.length} tokens are longer than the model takes", hint=f"at most {pretrained.limit}")
    model = task_model(pretrained, task, options.seed)
    examples = Examples(task, train.rows, train.columns, tokenizer, options.length, options.policy)
    evaluation = None
    if dev is not None:
        held = Examples(task, dev.rows, dev.columns, tokenizer, options.length, options.policy)
        evaluation = TaskEvaluation(task, held.all())
    course = RowCourse(examples, options.batch_rows, options.seed)
    data = TaskData(course, examples, evaluation, options.micro_tokens, rank=ranks.rank, num_ranks=ranks.size)
    resolved = {
        "options": options.model_dump(mode="json"),
        "recipe": model.recipe.model_dump(mode="json"),
        "from": pretrained.digest,
        "train": [train.rows.name, train.rows.num_rows, dict(train.columns)],
        "dev": None if dev is None else [dev.rows.name, dev.rows.num_rows, dict(dev.columns)],
    }
    return run_in(Path(folder), model, data, tokenizer, options, resolved, config=config, tell=tell, ranks=ranks)
