"""Choices by name on the command line: a wrong name gets the nearest right one."""

from collections.abc import Iterable
from difflib import get_close_matches

from bertie.errors import SpecError
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import RECIPES


def choose_recipe(name: str, size: str, vocab_size: int) -> Recipe:
    check("recipe", name, RECIPES)
    check("size", size, SIZES)
    return RECIPES[name](SIZES[size], vocab_size)


def check(what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        nearest = get_close_matches(name, names, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(names)}"
        raise SpecError(f"there is no {what} {name!r}", hint=hint)
