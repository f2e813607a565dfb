"""`bertie evaluate`: a task model and labelled rows enter, the task's metrics leave."""

import json

import typer

from bertie.cli.task_request import column_names, open_labelled, say, task_of
from bertie.models.answering_rows import outputs_of
from bertie.models.pretrained import load
from bertie.train.task_data import Examples


def evaluate(
    folder: str = typer.Argument(help="A folder that bertie finetune made."),
    data: list[str] = typer.Option(help="A file of labelled rows; may be given several times."),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; as in training by default."),
    skip: bool = typer.Option(False, "--skip-bad", help="Pass over rows that cannot be used, and count them."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Measure a task model on labelled rows."""
    pretrained = load(folder)
    task = task_of(pretrained, folder)
    assert pretrained.tokenizer is not None
    labelled = open_labelled(task, data, column_names(column))
    rows = length or pretrained.card.get("length", 128)
    examples = Examples(task, labelled.rows, labelled.columns, pretrained.tokenizer, rows, "skip" if skip else "refuse")
    read = examples.all()
    outputs = outputs_of(pretrained.model, task, read)
    answers = [task.answer(example, one) for example, one in zip(read, outputs, strict=True)]
    scores = task.score(answers, [example.gold for example in read])
    if examples.faults.num_faults:
        say(str(examples.faults))
    if as_json:
        typer.echo(json.dumps(scores))
        return
    for name, value in scores.items():
        typer.echo(f"{name:24} {value:.4f}")
