"""`bertie recipes`: which systems there are, and in which sizes."""

import inspect
import json

import typer
from rich.console import Console
from rich.table import Table

from bertie.inspection.parameters import count_recipe
from bertie.models.recipe import SIZES
from bertie.models.recipes import RECIPES


def recipes(as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    """List the recipes and their sizes with parameter counts (encoder with biases and pooler)."""
    counts = {name: {size: count_recipe(make(SIZES[size])).encoder for size in SIZES} for name, make in RECIPES.items()}
    if as_json:
        typer.echo(json.dumps(counts))
        return
    table = Table("recipe", "what it is", *SIZES)
    for name, make in RECIPES.items():
        summary = (inspect.getdoc(make) or "").splitlines()[0]
        table.add_row(name, summary, *(f"{count / 1e6:,.1f}M" for count in counts[name].values()))
    Console().print(table)
