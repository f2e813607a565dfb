"""`bertie runs`: which runs there are, how far they are, and their curves."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from bertie.cli.app import example
from bertie.cli.pretrain import figures_told
from bertie.train.overview import RunOverview, find_runs, loss_curve, num_resumed, overview


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
    found = [overview(path) for path in find_runs(folder)]
    if as_json:
        for one in found:
            typer.echo(json.dumps(asdict(one)))
        return
    if not found:
        typer.echo(f"{folder}: there is no run here")
        return
    table = Table("run", "recipe", "steps", "loss", "held out", "tokens/s")
    for one in found:
        held = f"{one.evaluation['loss']:.4f}" if one.evaluation else ""
        loss = "" if one.loss is None else f"{one.loss:.4f}"
        speed = "" if one.tokens_per_second is None else f"{one.tokens_per_second:,.0f}"
        table.add_row(one.name, one.recipe, progress_told(one), loss, held, speed)
    Console().print(table)


@runs.command("show", epilog=example("bertie runs show my-run"))
def show(
    run: Path = typer.Argument(help="A run folder."),
    width: int = typer.Option(72, min=20, help="Columns of the curve."),
    height: int = typer.Option(16, min=4, help="Lines of the curve."),
) -> None:
    """Draw a run's loss against its steps: dots for training, o for held-out text."""
    one = overview(run)
    resumed = num_resumed(run)
    again = f", went on {resumed:,} times" if resumed else ""
    typer.echo(f"{one.name}: {one.recipe}, {progress_told(one)}{again}")
    for line in loss_curve(run, width, height):
        typer.echo(line)
    if one.evaluation:
        typer.echo(f"held out after step {one.evaluation['step']:,}: {figures_told(one.evaluation)}")


def progress_told(one: RunOverview) -> str:
    return f"{one.step:,} of {one.steps:,} steps{', finished' if one.finished else ''}"
