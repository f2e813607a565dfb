"""`bertie inspect`: looking into a model."""

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from bertie.cli.app import example
from bertie.cli.choices import choose_recipe
from bertie.errors import SpecError
from bertie.inspection.parameters import ParameterCounts, count_parameters, count_recipe
from bertie.models.folder import open_folder
from bertie.models.source import find_folder

inspect = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@inspect.callback()
def looking() -> None:
    """Look into a model."""


@inspect.command(epilog=example("bertie inspect params --recipe bert --size base"))
def params(
    folder: Path | None = typer.Argument(None, help="A model folder; or name a recipe."),
    recipe: str | None = typer.Option(None, help="Count a recipe instead of a folder."),
    size: str = typer.Option("base", help="The recipe's size."),
    vocab_size: int = typer.Option(30_522, min=1, help="The recipe's vocabulary."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Count parameters by part, with and without biases and pooler."""
    if (folder is None) == (recipe is None):
        raise SpecError("give either a model folder or --recipe")
    if folder is not None:
        counts = count_parameters(open_folder(find_folder(folder)).model)
    else:
        counts = count_recipe(choose_recipe(str(recipe), size, vocab_size))
    if as_json:
        sums = {"without_biases": counts.without_biases, "encoder": counts.encoder, "total": counts.total}
        typer.echo(json.dumps({"parts": counts.parts, "heads": counts.heads, **sums}))
    else:
        Console().print(_table(counts))


def _table(counts: ParameterCounts) -> Table:
    table = Table("part", "parameters")
    table.columns[1].justify = "right"
    later = ("biases", "pooler")
    for part, count in counts.parts.items():
        if part not in later:
            table.add_row(part, f"{count:,}")
    table.add_row("without biases", f"{counts.without_biases:,}", style="bold", end_section=True)
    for part in later:
        table.add_row(part, f"{counts.parts.get(part, 0):,}")
    table.add_row("with biases and pooler", f"{counts.encoder:,}", style="bold", end_section=True)
    for head, count in counts.heads.items():
        table.add_row(f"{head} head", f"{count:,}")
    table.add_row("with heads", f"{counts.total:,}", style="bold")
    return table
