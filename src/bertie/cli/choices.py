"""Words of the command line: a wrong name gets the nearest right one, a wrong value is told with its flag."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from bertie.errors import SpecError

if TYPE_CHECKING:
    from bertie.models.recipe import Recipe


def choose_recipe(name: str, size: str, vocab_size: int | None) -> "Recipe":
    """Without a size of the vocabulary the recipe has its own."""
    from bertie.models.recipe import SIZES  # with torch, which many verbs do not need
    from bertie.models.recipes import RECIPES

    check("recipe", name, RECIPES)
    check("size", size, SIZES)
    return RECIPES[name](SIZES[size], *([] if vocab_size is None else [vocab_size]))


def check(what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        nearest = get_close_matches(name, names, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(names)}"
        raise SpecError(f"there is no {what} {name!r}", hint=hint)


@contextmanager
def told_by_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """A mistake in a field of a spec is told under its flag; `flags` has them by the last part of a field's name."""
    try:
        yield
    except SpecError as error:
        field, _, what = error.what.partition(": ")
        if (flag := flags.get(field.rpartition(".")[2])) is None:
            raise
        raise SpecError(f"{flag}: {what}", where=error.where, hint=error.hint) from None
