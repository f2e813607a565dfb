"""`bertie evaluate`: a task model and labelled rows enter, the task's metrics leave, and a report for people."""

import json
from pathlib import Path

import typer

from bertie.cli.noise_request import noises_of, tell_replaced
from bertie.cli.predict import tell_cuts
from bertie.cli.task_request import (
    FORMAT,
    HEADER,
    FileLook,
    column_names,
    length_of,
    open_labelled,
    say,
    task_of,
    tell_unmeasured,
)
from bertie.data.manifest import write_whole
from bertie.errors import InputError, SpecError
from bertie.inspection.noise_curve import measure_noise
from bertie.inspection.png_chart import write_png
from bertie.inspection.task_page import task_page
from bertie.inspection.task_report import report_task, terminal_lines
from bertie.inspection.text_chart import draw_text
from bertie.models.pretrained import load
from bertie.train.finetuning import check_length
from bertie.train.task_data import Examples, Policy
from bertie.train.task_evaluation import TaskEvaluation


def evaluate(
    folder: str = typer.Argument(help="A folder that bertie finetune made."),
    data: list[str] = typer.Option(help="A file of labelled rows; may be given several times."),
    task: str | None = typer.Option(None, help="Which one, where the folder was trained for several."),
    column: list[str] = typer.Option([], help="Which column plays which role, like text=review."),
    length: int | None = typer.Option(None, min=8, help="Tokens of a row; as in training by default."),
    format: str | None = FORMAT,
    header: bool | None = HEADER,
    skip: bool = typer.Option(False, "--skip-bad", help="Pass over rows that cannot be used, and count them."),
    noise: str | None = typer.Option(
        None, help="Shares of words to misspell, like 0,0.1,0.3,0.5: how far the score falls is drawn."
    ),
    confusable: Path | None = typer.Option(
        None, help="With --noise: a file of ideographs that are taken for each other, one group a line."
    ),
    png: Path | None = typer.Option(None, help="With --noise: the curve as a picture."),
    report: Path | None = typer.Option(None, help="An HTML file with all figures and the worst mistakes."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object: the metrics by name."),
) -> None:
    """Measure a task model on labelled rows."""
    noises = noises_of(noise, confusable)
    if png is not None and noise is None:
        raise SpecError("--png says nothing without --noise", hint="leave out --png")
    for file in (png, report):
        if file is not None and not file.absolute().parent.is_dir():
            raise SpecError(f"there is no folder {file.absolute().parent} to write to", hint="make it first")
    pretrained = load(folder)
    chosen = task_of(pretrained, folder, task)
    rows = length_of(pretrained, length)
    tokenizer = check_length(pretrained, rows)
    labelled = open_labelled(chosen, data, column_names(column), FileLook(format, header))
    chosen = chosen.measured_on(labelled.columns, labelled.all())
    tell_unmeasured(chosen, labelled)
    policy: Policy = "skip" if skip else "refuse"
    examples = Examples(chosen, labelled, tokenizer, rows, policy)
    read = examples.all()
    tell_replaced(tokenizer, chosen, labelled)
    tell_cuts(len(examples.num_cut), sum(examples.num_cut.values()), rows)
    if examples.faults.num_faults:
        say(str(examples.faults))
    if not read:
        raise InputError("no row can be used", where=labelled.rows.name)
    curve = measure_noise(pretrained.model, chosen, labelled, tokenizer, rows, noises, policy) if noises else None
    for point in () if curve is None else curve.points:
        if point.num_cut > len(examples.num_cut):
            say(f"with {point.rate:.0%} misspelt {point.num_cut:,} rows were longer than {rows} tokens and were cut")
    answers = TaskEvaluation(chosen, read).answers(pretrained.model)
    scores = chosen.score(answers, [example.gold for example in read])
    if curve is not None and png is not None:
        write_png([curve.chart], png, labelled.rows.name)
        say(f"the picture is {png}")
    if as_json:
        beside = {} if curve is None else {"noise": [point.as_dict() for point in curve.points]}
        typer.echo(json.dumps({**scores, **beside}))
    if as_json and report is None:
        return
    found = report_task(chosen, read, answers, name=labelled.rows.name)
    if not as_json:
        typer.echo("\n".join(terminal_lines(found)))
        if curve is not None:
            typer.echo("\n".join(["", *draw_text(curve.chart), "", *curve.lines()]))
    if report is not None:
        write_whole(report, task_page(found, [] if curve is None else [curve.section()]).encode())
        say(f"the report is {report}")
