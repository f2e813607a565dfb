"""Turns options of jobs into flags and arguments of click."""

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click

from bertie.jobs.job import Option

METAVARS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
# Every command has these; none is an option of a job.
SETTINGS = {
    "config": ("FILE", "Read options from a TOML file; flags win over it."),
    "print_config": (None, "Print the options as a config file, and stop."),
    "plugin": ("FILE", "A Python file that defines a task, an objective, a visibility or a recipe."),
    "quiet": (None, "Print only the result."),
    "json": (None, "Print the result as JSON."),
    "help_all": (None, "Show all options."),
}


def parameter(option: Option) -> click.Parameter:
    """The flag or argument of an option. Values stay text: the job validates them, wherever they come from."""
    kind, many = _kind(option.field.annotation)
    many = many or bool(extra(option, "many"))
    convert = (lambda ctx, param, value: as_paths(value)) if extra(option, "paths") else None
    if extra(option, "argument"):
        name = option.name.upper() + ("..." if many else "")
        shown = name if option.field.is_required() else f"[{name}]"
        # Never required by click: a config file may have it.
        return click.Argument(
            [option.name], required=False, nargs=-1 if many else 1, type=str, metavar=shown, callback=convert
        )
    dashed = option.name.replace("_", "-")
    if kind is bool:
        both = option.field.default is not False
        flags = extra(option, "flag") or (f"--{dashed}/--no-{dashed}" if both else f"--{dashed}")
        return click.Option([flags, option.name], default=None, is_flag=True, help=option.field.description)
    return click.Option(
        [f"--{dashed}", option.name],
        type=str,
        multiple=many,
        callback=convert,
        metavar=extra(option, "metavar") or METAVARS.get(kind, "TEXT"),
        help=option.field.description,
    )


def as_paths(value: Any) -> Any:
    """Text that names files, wherever it comes from; so that a missing file is never taken for a text."""
    if isinstance(value, tuple | list):
        return [Path(one) for one in value] or None
    return Path(value) if isinstance(value, str) else value


def _kind(annotation: Any) -> tuple[Any, bool]:
    """The plain type of an annotation, and whether there may be many values."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return next((_kind(one) for one in get_args(annotation) if one is not type(None)), (str, False))
    if origin in (list, tuple):
        return get_args(annotation)[0], True
    return (str if origin is Literal else annotation), False


def extra(option: Option, key: str) -> Any:
    """What a job says of an option's looks on the command line; see `option`."""
    found = option.field.json_schema_extra
    return found.get(key) if isinstance(found, dict) else None


def settings() -> Iterator[click.Option]:
    """What every command takes beside the options of its job."""
    for name, (metavar, help) in SETTINGS.items():
        flag = f"--{name.replace('_', '-')}"
        is_flag, all_help = metavar is None, name == "help_all"
        show = _show_all_help if all_help else None
        many = name == "plugin"
        yield click.Option(
            [flag], is_flag=is_flag, metavar=metavar, multiple=many, is_eager=all_help, callback=show, help=help
        )


def _show_all_help(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        ctx.meta["help_all"] = True
        click.echo(ctx.get_help())
        ctx.exit()
