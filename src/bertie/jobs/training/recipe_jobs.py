"""The jobs `recipes list` and `recipes show`: which recipes there are, and what each is made of."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from bertie.inspection.composition import Part, compose
from bertie.inspection.difference import changes, formula
from bertie.inspection.parameters import count_recipe
from bertie.inspection.wording import describe
from bertie.jobs.job import Job, option
from bertie.jobs.options.recipe_choice import choose_recipe
from bertie.jobs.result import Result
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import PARENTS, RECIPES
from bertie.reporting.events import OnEvent, ignore
from bertie.reporting.quantities import format_count
from bertie.spec import Spec


class ListRecipesJob(Job):
    """List the recipes and their sizes with parameter counts (encoder with biases and pooler)."""

    verb: ClassVar[str] = "recipes list"
    example: ClassVar[str] = "bertie recipes"

    def run(self, on_event: OnEvent = ignore) -> "RecipeList":
        return RecipeList(
            {name: {size: count_recipe(make(SIZES[size])).encoder for size in SIZES} for name, make in RECIPES.items()}
        )


class RecipeList(Result):
    """`counts`: parameters by recipe and size."""

    def __init__(self, counts: Mapping[str, Mapping[str, int]]):
        self.counts = counts

    def to_json(self) -> Any:
        return self.counts

    def parts(self) -> Iterable[RenderableType]:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for number, heading in enumerate(("recipe", "what it is", *SIZES)):
            table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=number != 1)
        for name, counts in self.counts.items():
            summary = (inspect.getdoc(RECIPES[name]) or "").splitlines()[0]
            table.add_row(name, summary, *(f"{count / 1e6:,.1f}M" for count in counts.values()))
        yield table


class ShowRecipeJob(Job):
    """Show what a recipe is made of, and how it differs from the recipe it builds on.

    Parameters are counted over all layers together; what is tied or shared counts once.
    """

    verb: ClassVar[str] = "recipes show"
    example: ClassVar[str] = "bertie recipes show albert --size mini"
    recipe: str = option(help="A recipe.", argument=True)
    size: str = option("base", "Its size: tiny, mini, small, medium, base or large.", common=True)
    vocab_size: int | None = option(None, "Size of its vocabulary; as in its paper by default.", common=True, ge=1)

    def run(self, on_event: OnEvent = ignore) -> "RecipeView":
        recipe = choose_recipe(self.recipe, self.size, self.vocab_size)
        parent = PARENTS.get(self.recipe)
        return RecipeView(recipe, None if parent is None else choose_recipe(parent, self.size, recipe.vocab_size))


class RecipeView(Result):
    def __init__(self, recipe: Recipe, parent: Recipe | None):
        self.recipe, self.parent = recipe, parent
        self.differences = [] if parent is None else changes(parent, recipe)

    @property
    def formula(self) -> str:
        """The difference from the parent in one line: "albert = bert + factorised(128) ..."."""
        if self.parent is None:
            return f"{self.recipe.name} = a recipe without a parent"
        return formula(self.parent, self.recipe)

    def to_json(self) -> Any:
        return {
            "name": self.recipe.name,
            "parent": self.parent and self.parent.name,
            "difference": self.formula,
            "differences": [
                {"field": one.field, "before": _plain(one.before), "after": _plain(one.after)}
                for one in self.differences
            ],
            "composition": asdict(compose(self.recipe)),
            "recipe": _plain(self.recipe),
        }

    def parts(self) -> Iterable[RenderableType]:
        yield self.formula
        yield _tree(compose(self.recipe))
        for one in self.differences:
            yield f"{one.field}: {describe(one.before)} -> {describe(one.after)}"


def _tree(part: Part) -> Tree:
    label = Text(part.name, style="bold")
    if part.words:
        label.append(f"  {part.words}", style="not bold")
    if part.num_parameters:
        label.append(f"  {format_count(part.num_parameters)}", style="not bold cyan")
    tree = Tree(label)
    tree.children = [_tree(child) for child in part.parts]
    return tree


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Spec) else value
