"""`bertie runs`: which runs there are, how far they are, their curves, and what sets them apart."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from bertie.cli.app import console, example
from bertie.cli.choices import check
from bertie.cli.run_line import figures_told
from bertie.errors import FolderError, SpecError
from bertie.inspection.png_chart import write_png
from bertie.inspection.quantities import duration_told
from bertie.inspection.run_charts import all_figures, main_figures, run_charts
from bertie.inspection.run_comparison import Comparison, compare_runs
from bertie.inspection.run_page import comparison_page, run_page
from bertie.inspection.text_chart import draw_text
from bertie.train.history import AXES, Axis, RunHistory, read_history
from bertie.train.overview import find_runs, overview

AGAINST = typer.Option("steps", help=f"What the curves run along: {', '.join(AXES)}.")
WIDTH = typer.Option(72, min=20, help="Columns of a curve.")
HEIGHT = typer.Option(14, min=4, help="Lines of a curve.")
HTML = typer.Option(None, help="Also write one self-contained HTML page, with all figures.")
PNG = typer.Option(None, help="Also write a picture, with all figures.")


class RunsGroup(TyperGroup):
    """A folder in the place of a command means: list it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and (args[0] in self.commands or args[0].startswith("-"))
        return super().parse_args(ctx, args if named else ["list", *args])


runs = typer.Typer(cls=RunsGroup, rich_markup_mode=None)


@runs.command("list", epilog=example("bertie runs my-runs"))
def listing(
    folder: Path = typer.Argument(Path(), help="A folder with run folders in it."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object a run."),
) -> None:
    """List the runs in a folder: how far each is and what it has reached."""
    found = [overview(read_history(path)) for path in find_runs(folder)]
    if as_json:
        for one in found:
            typer.echo(json.dumps(asdict(one)))
        return
    if not found:
        typer.echo(f"{folder}: there is no run here")
        return
    headings = ("run", "recipe", "size", "steps", "done", "time", "loss", "held out", "tokens/s")
    table = Table(*headings, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for one in found:
        held = f"{one.evaluation['loss']:.4f}" if one.evaluation else ""
        loss = "" if one.loss is None else f"{one.loss:.4f}"
        speed = "" if one.tokens_per_second is None else f"{one.tokens_per_second:,.0f}"
        state = "finished" if one.finished else f"{one.progress:.0%}"
        time = duration_told(one.seconds)
        table.add_row(one.name, one.recipe, one.size, f"{one.step:,}", state, time, loss, held, speed)
    Console(emoji=False).print(table)


@runs.command("show", epilog=example("bertie runs show my-run --against time --html my-run.html"))
def show(
    run: Path = typer.Argument(help="A run folder."),
    against: str = AGAINST,
    html: Path | None = HTML,
    png: Path | None = PNG,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> None:
    """Draw a run's curves: dots for training, o for held-out text, dashes for predicting by frequency alone."""
    axis = choose_axis(against)
    history = read_history(run)
    one = overview(history)
    times = "once" if history.num_resumed == 1 else f"{history.num_resumed:,} times"
    again = f", went on {times}" if history.num_resumed else ""
    speed = f", {one.tokens_per_second:,.0f} tokens/s" if one.tokens_per_second else ""
    state = "finished" if one.finished else f"{one.progress:.0%} done"
    of = f" of {one.steps:,}" if one.steps else ""
    time = duration_told(one.seconds)
    typer.echo(f"{one.name}: {one.recipe} {one.size}, {one.step:,}{of} steps, {state}, {time}{speed}{again}")
    print_charts([history], axis, width, height)
    if one.evaluation:
        typer.echo(f"held out after step {one.evaluation['step']:,}: {figures_told(one.evaluation)}")
    if html is not None:
        write_page(html, run_page(history, axis))
    if png is not None:
        write_picture(png, [history], axis)


@runs.command("compare", epilog=example("bertie runs compare run-a run-b --against time --png both.png"))
def compare(
    folders: list[Path] = typer.Argument(metavar="RUN RUN...", help="Two run folders or more."),
    against: str = AGAINST,
    html: Path | None = HTML,
    png: Path | None = PNG,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> None:
    """Draw the curves of several runs over each other, and tell which options differ and what came of it."""
    axis = choose_axis(against)
    if len(folders) < 2:
        raise SpecError("one run cannot be compared", hint="name two or more, or use `bertie runs show`")
    histories = named_apart([read_history(folder) for folder in folders], folders)
    print_charts(histories, axis, width, height)
    print_comparison(compare_runs(histories))
    if html is not None:
        write_page(html, comparison_page(histories, axis))
    if png is not None:
        write_picture(png, histories, axis)


def choose_axis(against: str) -> Axis:
    check("axis", against, AXES)
    return next(axis for axis in AXES if axis == against)


def named_apart(histories: Sequence[RunHistory], folders: Sequence[Path]) -> list[RunHistory]:
    """By their folders' names, or by the whole paths where two names are the same."""
    names = {history.name for history in histories}
    if len(names) == len(histories):
        return list(histories)
    return [replace(history, name=str(folder)) for history, folder in zip(histories, folders, strict=True)]


def print_charts(histories: Sequence[RunHistory], axis: Axis, width: int, height: int) -> None:
    for chart in run_charts(histories, main_figures(histories), axis):
        for line in draw_text(chart, width, height):
            typer.echo(line)
        typer.echo()


def print_comparison(found: Comparison) -> None:
    table = Table("", *found.names)
    for name, values in found.figures.items():
        table.add_row(name, *values, end_section=name == list(found.figures)[-1])
    for name, values in found.options.items():
        table.add_row(name, *values)
    Console(markup=False, emoji=False).print(table)
    for note in found.notes:
        console.print(note, style="yellow", markup=False, highlight=False)


def write_page(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FolderError(f"cannot be written ({error.strerror})", where=str(file)) from None
    console.print(f"{file}: written", markup=False, highlight=False)


def write_picture(file: Path, histories: Sequence[RunHistory], axis: Axis) -> None:
    title = ", ".join(history.name for history in histories)
    try:
        write_png(run_charts(histories, all_figures(histories), axis), file, title)
    except OSError as error:
        raise FolderError(f"cannot be written ({error.strerror})", where=str(file)) from None
    console.print(f"{file}: written", markup=False, highlight=False)
