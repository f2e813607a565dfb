"""`bertie predict`: a task model and rows, or a text on the line, enter; one answer a row leaves."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import typer

from bertie.cli.noise_request import num_replaced, tell_replaced
from bertie.cli.task_request import (
    FORMAT,
    HEADER,
    FileLook,
    column_names,
    length_of,
    open_labelled,
    say,
    task_of,
    values_on_the_line,
)
from bertie.errors import FolderError, InputError, SpecError
from bertie.models.answering_rows import READ_AHEAD, answers_of
from bertie.models.pretrained import Pretrained, load
from bertie.progress import progress_line
from bertie.tasks.choosing import Rank
from bertie.tasks.task import Answer, Example, Task
from bertie.train.finetuning import check_length
from bertie.train.task_data import Examples


def predict(
    folder: str = typer.Argument(help="A folder that bertie finetune made."),
    texts: list[str] = typer.Argument(
        None, help="A text, the texts of a pair, or a query and its candidates, instead of --input."
    ),
    input: list[str] = typer.Option([], help="A file of rows; may be given several times."),
    output: Path | None = typer.Option(None, help="One JSON object a line; standard output by default."),
    task: str | None = typer.Option(None, help="Which one, where the folder was trained for several."),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    format: str | None = FORMAT,
    header: bool | None = HEADER,
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; as in training by default."),
) -> None:
    """Let a task model answer, row by row and in their order.

    A row that cannot be used gets an object with its `error`.
    """
    if bool(texts) == bool(input):
        raise SpecError("there is nothing to answer" if not texts else "give texts or --input, not both")
    pretrained = load(folder)
    chosen = task_of(pretrained, folder, task)
    rows = length_of(pretrained, length)
    tokenizer = check_length(pretrained, rows)
    if texts:
        given = values_on_the_line(chosen, texts)
        if replaced := sum(num_replaced(tokenizer, chosen, values) for values in given):
            say(f"{replaced:,} words are put right by the table")
        read = [chosen.read(values, tokenizer, rows) for values in given]
        tell_cuts(sum(one.num_cut > 0 for one in read), sum(one.num_cut for one in read), rows)
        answers = [answer for _, answer in answers_of(pretrained.model, chosen, read)]
        if isinstance(chosen, Rank):
            told = [{"candidate": text, **answer} for text, answer in zip(texts[1:], answers, strict=True)]
            answers = sorted(told, key=lambda answer: -answer["score"])
        for answer in answers:
            typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    labelled = open_labelled(chosen, input, column_names(column), FileLook(format, header), targets=False)
    examples = Examples(chosen, labelled, tokenizer, rows, "refuse", labelled=False, remembered=0)
    errors = []
    with (
        opened(output) as file,
        progress_line("Answering", examples.num_samples, "rows", show=None if output else False) as advance,
    ):
        for answer in answered(pretrained, chosen, examples):
            if "error" in answer:
                errors.append(answer["error"])
            print(json.dumps(answer, ensure_ascii=False), file=file)
            advance(1)
    tell_cuts(len(examples.num_cut), sum(examples.num_cut.values()), rows)
    tell_replaced(tokenizer, chosen, labelled)
    if errors:
        say(f"{len(errors):,} of {examples.num_samples:,} rows could not be answered; the first: {errors[0]}")


def answered(pretrained: Pretrained, task: Task, examples: Examples) -> Iterator[Answer]:
    """One a row, in their order, whatever is wrong with some."""
    for first in range(0, examples.num_samples, READ_AHEAD):
        numbers = range(first, min(first + READ_AHEAD, examples.num_samples))
        read = [read_or_error(examples, number) for number in numbers]
        answers = answers_of(pretrained.model, task, (one for one in read if isinstance(one, Example)))
        for one in read:
            yield {"error": str(one)} if isinstance(one, InputError) else next(answers)[1]


def read_or_error(examples: Examples, number: int) -> Example | InputError:
    try:
        example = examples.example(number)
    except InputError as error:
        return InputError(error.what, where=error.where)  # what to do about training rows does not help here
    assert example is not None
    return example


@contextmanager
def opened(output: Path | None) -> Iterator[TextIO]:
    """A file appears when it is whole."""
    if output is None:
        yield sys.stdout
        return
    part = output.with_name(output.name + ".part")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(output)
    except OSError as error:
        raise FolderError(f"cannot be written ({error.strerror})", where=str(output)) from None


def tell_cuts(num_rows: int, num_tokens: int, length: int) -> None:
    if num_rows:
        say(f"{num_rows:,} rows were longer than {length} tokens and were cut: {num_tokens:,} tokens were not read")
