"""`bertie predict`: a task model and rows, or a text on the line, enter; one answer a row leaves."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from bertie.cli.task_request import column_names, open_labelled, say, task_of
from bertie.errors import InputError, SpecError
from bertie.models.answering_rows import answers_of
from bertie.models.pretrained import load
from bertie.progress import progress_line
from bertie.tasks.task import Example
from bertie.train.task_data import Examples


def predict(
    folder: str = typer.Argument(help="A folder that bertie finetune made."),
    texts: list[str] = typer.Argument(None, help="A text, or the texts of a pair, instead of --input."),
    input: list[str] = typer.Option([], help="A file of rows; may be given several times."),
    output: Path | None = typer.Option(None, help="One JSON object a line; standard output by default."),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; as in training by default."),
) -> None:
    """Let a task model answer. A row that cannot be used gets an object with its `error`."""
    if bool(texts) == bool(input):
        raise SpecError("there is nothing to answer" if not texts else "give texts or --input, not both")
    pretrained = load(folder)
    task = task_of(pretrained, folder)
    tokenizer, rows = pretrained.tokenizer, length or pretrained.card.get("length", 128)
    assert tokenizer is not None
    if texts:
        values = dict(zip((role for role in task.roles if role not in task.targets), texts, strict=False))
        example = task.read(values, tokenizer, rows)
        (answer,) = [answer for _, answer in answers_of(pretrained.model, task, iter([example]))]
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    labelled = open_labelled(task, input, column_names(column), targets=False)
    examples = Examples(task, labelled.rows, labelled.columns, tokenizer, rows, "refuse")
    wrong: dict[int, str] = {}

    def read() -> Iterator[Example]:
        for number in range(labelled.rows.num_rows):
            try:
                example = examples.example(number)
                assert example is not None
                yield example
            except InputError as error:
                wrong[number] = str(error)

    written = sys.stdout if output is None else output.open("w", encoding="utf-8")
    with progress_line("Answering", labelled.rows.num_rows, "rows") as advance:
        number = 0
        for _, answer in answers_of(pretrained.model, task, read()):
            while number in wrong:
                print(json.dumps({"error": wrong[number]}, ensure_ascii=False), file=written)
                number += 1
            print(json.dumps(answer, ensure_ascii=False), file=written)
            number += 1
            advance(1)
        while number in wrong:
            print(json.dumps({"error": wrong[number]}, ensure_ascii=False), file=written)
            number += 1
    if output is not None:
        written.close()
    if wrong:
        say(f"{len(wrong):,} of {labelled.rows.num_rows:,} rows could not be answered; the first: {next(iter(wrong.values()))}")
