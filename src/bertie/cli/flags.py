"""Turns options of jobs into flags and arguments of click."""

import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click

from bertie.jobs.job import Option

METAVARS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
# Every command takes these beside the options of its job.
SETTINGS = {
    "config": click.Option(["--config"], metavar="FILE", help="Read options from a TOML file; flags win over it."),
    "print_config": click.Option(
        ["--print-config"], is_flag=True, help="Print the options as a config file, and stop."
    ),
    "plugin": click.Option(
        ["--plugin"],
        metavar="FILE",
        multiple=True,
        help="A Python file that defines a task, an objective, a visibility or a recipe.",
    ),
    "quiet": click.Option(["--quiet"], is_flag=True, help="Print only the result."),
    "json": click.Option(["--json"], is_flag=True, help="Print the result as JSON."),
    "help_all": click.Option(["--help-all"], is_flag=True, help="Show all options."),
}


def parameter(option: Option) -> click.Parameter:
    """The flag or argument of an option. Values stay text: the job validates them, wherever they come from."""
    kind, many, choices = _kind(option.field.annotation)
    many = many or bool(option.extra.get("many"))
    if option.extra.get("argument"):
        name = option.name.upper() + ("..." if many else "")
        shown = name if option.field.is_required() else f"[{name}]"
        # Never required by click: a config file may have it.
        return click.Argument([option.name], required=False, nargs=-1 if many else 1, type=str, metavar=shown)
    dashed = option.name.replace("_", "-")
    if kind is bool:
        both = option.field.default is not False
        flags = option.extra.get("flag") or (f"--{dashed}/--no-{dashed}" if both else f"--{dashed}")
        return click.Option([flags, option.name], default=None, is_flag=True, help=option.field.description)
    return click.Option(
        [f"--{dashed}", option.name],
        type=str,
        multiple=many,
        metavar=option.extra.get("metavar") or choices or METAVARS.get(kind, "TEXT"),
        help=option.field.description,
    )


def as_paths(value: Any) -> Any:
    """Text that names files, wherever it comes from; so that a missing file is never taken for a text."""
    if value == "" or (isinstance(value, tuple | list) and "" in value):
        raise click.BadParameter("the path is empty")
    if isinstance(value, tuple | list):
        return [Path(one) for one in value] or None
    return Path(value) if isinstance(value, str) else value


def _kind(annotation: Any) -> tuple[Any, bool, str]:
    """The plain type of an annotation, whether there may be many values, and those to choose from: a|b."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        kinds = [_kind(one) for one in get_args(annotation) if one is not type(None)]
        return *kinds[0][:2], next((choices for _, _, choices in kinds if choices), "")
    if origin in (list, tuple):
        return get_args(annotation)[0], True, ""
    if origin is Literal:
        return str, False, "|".join(map(str, get_args(annotation)))
    return annotation, False, ""
