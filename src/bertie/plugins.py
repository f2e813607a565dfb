"""Adds a user's own tasks, objectives, visibilities, embeddings and recipes to the tables where specs look up kinds.

    bertie.plugins.use("my_task.py")  # a file: the classes of these kinds that it defines, and its RECIPES
    bertie.plugins.use(MyTask)        # a class, or an object of it
    bertie.plugins.use_parts(recipe)  # the kinds that a recipe is made of; Python's jobs do this with what they get

Only files that the user names here are run: a model folder names kinds, never code.
"""

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bertie.errors import SpecError
from bertie.models.recipe import OBJECTIVES, SIZES, Recipe
from bertie.models.recipes import RECIPES
from bertie.nn.embeddings import EMBEDDINGS, EmbeddingsSpec
from bertie.nn.visibility import VISIBILITIES, Visibility
from bertie.objectives.objective import Objective
from bertie.spec import Spec, kind_of
from bertie.tasks import TASKS, Task


class Table(NamedTuple):
    what: str
    base: type[Spec]
    kinds: dict[str, Any]


TABLES = (
    Table("task", Task, TASKS),
    Table("objective", Objective, OBJECTIVES),
    Table("visibility", Visibility, VISIBILITIES),
    Table("embeddings", EmbeddingsSpec, EMBEDDINGS),
)
EXAMPLE = 'write, for example, class Mine(Task) with kind: Literal["mine"] = "mine", or RECIPES = {"mine": function}'
_owners: dict[tuple[str, str], str] = {}  # who brought a kind: it may replace it, others may not


def use(source: str | Path | type[Spec] | Spec) -> tuple[str, ...]:
    """Makes the kinds of a plugin known; returns what was added, like "task stars". Using it again replaces them."""
    if isinstance(source, str | Path):
        return _use_file(Path(source))
    spec = source if isinstance(source, type) else type(source)
    return _add_class(spec, f"{spec.__module__}.{spec.__qualname__}")


def use_parts(whole: Spec) -> None:
    """Makes the kinds of an object and of all its parts known, so that what is made of them can be saved and opened."""
    for part in _parts(whole):
        for table in TABLES:
            if isinstance(part, table.base) and table.kinds.get(kind_of(type(part))) is not type(part):
                use(part)


def _parts(value: Any) -> Iterator[Spec]:
    if isinstance(value, Spec):
        yield value
        value = [getattr(value, name) for name in type(value).model_fields]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)


def files() -> tuple[str, ...]:
    """Returns the plugin files in use, for another process: `partial(plugins.use_files, plugins.files())`."""
    return tuple(dict.fromkeys(owner for owner in _owners.values() if Path(owner).is_file()))


def use_files(paths: Iterable[str]) -> None:
    for path in paths:
        use(path)


def _use_file(path: Path) -> tuple[str, ...]:
    module, owner = _run(path), str(path.resolve())
    added: list[str] = []
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__ and _is_concrete(value):
            added += _add_class(value, owner)
    for name, function in getattr(module, "RECIPES", {}).items():
        added.append(_add("recipe", RECIPES, name, _checked(name, function, owner), owner))
    if not added:
        raise SpecError("defines no task, objective, visibility, embeddings or recipes", where=str(path), hint=EXAMPLE)
    return tuple(added)


def _run(path: Path) -> ModuleType:
    """Runs a file as a module of its own name, so that what it defines can be pickled within this process."""
    if not path.is_file():
        raise SpecError("there is no such plugin file", where=str(path))
    name = f"bertie_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError("is not a Python file", where=str(path), hint="a plugin is a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = str(path) if line is None else f"{path}:{line}"
        raise SpecError(f"the plugin cannot be loaded: {type(error).__name__}: {error}", where=where) from error
    return module


def _is_concrete(spec: type) -> bool:
    """Whether plain data can name it: a base class that only others extend has no kind of its own."""
    if not issubclass(spec, Spec) or not issubclass(spec, tuple(table.base for table in TABLES)):
        return False
    field = spec.model_fields.get("kind")
    return field is not None and isinstance(field.default, str)


def _add_class(spec: type[Spec], owner: str) -> tuple[str, ...]:
    tables = [table for table in TABLES if issubclass(spec, table.base)]
    if not tables:
        bases = ", ".join(table.base.__name__ for table in TABLES)
        raise SpecError(f"{spec.__name__} is none of what a plugin can bring: {bases}", hint=EXAMPLE)
    return tuple(_add(table.what, table.kinds, kind_of(spec), spec, owner) for table in tables)[:1]


def _add(what: str, kinds: dict[str, Any], kind: str, value: Any, owner: str) -> str:
    if kind in kinds and kinds[kind] is not value and _owners.get((what, kind)) != owner:
        raise SpecError(f"there is already a {what} {kind!r}", where=owner, hint="give yours another name")
    kinds[kind] = value
    _owners[what, kind] = owner
    return f"{what} {kind}"


def _checked(name: str, function: Any, owner: str) -> Callable[..., Recipe]:
    """Builds a recipe once, so that a mistake shows where the plugin is loaded."""
    recipe = function(SIZES["tiny"]) if callable(function) else None
    if not isinstance(recipe, Recipe) or recipe.name != name:
        what = f"RECIPES[{name!r}] must be a function (size, vocab_size) that returns a Recipe with this name"
        raise SpecError(what, where=owner)
    made: Callable[..., Recipe] = function
    return made
