"""`bertie recipes`: which systems there are, in which sizes, and what each is made of."""

import inspect
import json
from dataclasses import asdict
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree
from typer.core import TyperGroup

from bertie.cli.app import example
from bertie.cli.choices import choose_recipe
from bertie.inspection.composition import Part, compose
from bertie.inspection.difference import changes, formula
from bertie.inspection.parameters import count_recipe
from bertie.inspection.quantities import count_told
from bertie.inspection.wording import told
from bertie.models.recipe import SIZES
from bertie.models.recipes import PARENTS, RECIPES
from bertie.spec import Spec


class RecipesGroup(TyperGroup):
    """No command means: list them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["list", *args])


recipes = typer.Typer(cls=RecipesGroup, rich_markup_mode=None)


@recipes.command("list", epilog=example("bertie recipes"))
def listing(as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    """List the recipes and their sizes with parameter counts (encoder with biases and pooler)."""
    counts = {name: {size: count_recipe(make(SIZES[size])).encoder for size in SIZES} for name, make in RECIPES.items()}
    if as_json:
        typer.echo(json.dumps(counts))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, heading in enumerate(("recipe", "what it is", *SIZES)):
        table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=number != 1)
    for name, make in RECIPES.items():
        summary = (inspect.getdoc(make) or "").splitlines()[0]
        table.add_row(name, summary, *(f"{count / 1e6:,.1f}M" for count in counts[name].values()))
    Console().print(table)


@recipes.command("show", epilog=example("bertie recipes show albert --size mini"))
def show(
    name: str = typer.Argument(help="A recipe."),
    size: str = typer.Option("base", help="Its size."),
    vocab_size: int | None = typer.Option(None, min=1, help="Its vocabulary; as in its paper by default."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show what a recipe is made of, and how it differs from its parent: in one line, and field by field.

    Parameters are counted over all layers together; what is tied or shared counts once.
    """
    recipe = choose_recipe(name, size, vocab_size)
    parent = choose_recipe(PARENTS[name], size, recipe.vocab_size) if name in PARENTS else None
    line = f"{name} = a recipe without a parent" if parent is None else formula(parent, recipe)
    found = [] if parent is None else changes(parent, recipe)
    if as_json:
        differences = [{"field": one.field, "before": plain(one.before), "after": plain(one.after)} for one in found]
        facts = {"name": name, "parent": PARENTS.get(name), "difference": line, "differences": differences}
        typer.echo(json.dumps({**facts, "composition": asdict(compose(recipe)), "recipe": plain(recipe)}))
        return
    typer.echo(line)
    Console().print(tree_of(compose(recipe)))
    for change in found:
        typer.echo(f"{change.field}: {told(change.before)} -> {told(change.after)}")


def tree_of(part: Part) -> Tree:
    label = Text(part.name, style="bold")
    if part.words:
        label.append(f"  {part.words}", style="not bold")
    if part.num_parameters:
        label.append(f"  {count_told(part.num_parameters)}", style="not bold cyan")
    tree = Tree(label)
    tree.children = [tree_of(child) for child in part.parts]
    return tree


def plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Spec) else value
