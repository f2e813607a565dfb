"""A recipe as an option: a name of the table, in Python also a recipe or a function that makes one."""

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from bertie.jobs.job import check_name
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import RECIPES
from bertie.plugins import use_parts


def as_recipe(given: Any) -> Any:
    if isinstance(given, dict):
        return Recipe.parse(given)
    if isinstance(given, str | Recipe) or callable(given):
        return given
    raise ValueError("a name, a recipe, or a function of size and vocabulary size was expected")


def _plain(recipe: Any) -> Any:
    return recipe if isinstance(recipe, str) else getattr(recipe, "__name__", None) or recipe.model_dump(mode="json")


AnyRecipe = Annotated[Any, BeforeValidator(as_recipe), PlainSerializer(_plain, when_used="json")]


def choose_recipe(recipe: Any, size: str, vocab_size: int | None) -> Recipe:
    """Without a vocabulary size the recipe has its own."""
    if not isinstance(recipe, Recipe):
        check_name("size", size, SIZES)
        if isinstance(recipe, str):
            check_name("recipe", recipe, RECIPES)
            recipe = RECIPES[recipe]
        recipe = recipe(SIZES[size], *([] if vocab_size is None else [vocab_size]))
    found: Recipe = recipe
    use_parts(found)
    return found
