"""Options of a command in a TOML file: a file enters as defaults of the command's options, and options leave as a file.

Names are those of the flags, with `-` or `_`. What is given on the command line wins over the file.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from bertie.errors import InputError, SpecError

FILE = "config"  # the option itself, which has no place in a file


def read_config(ctx: typer.Context, file: Path | None) -> Path | None:
    """The callback of `--config`, which must be eager."""
    if file is not None:
        options = {flag: option for option in ctx.command.params for flag in flags_of(option) if option.name != FILE}
        ctx.default_map = {}
        for name, value in read_toml(file).items():
            option = options.get(name.replace("_", "-"))
            if option is None or option.name is None:
                nearest = get_close_matches(name.replace("_", "-"), options, n=1)
                hint = f"did you mean {nearest[0]!r}?" if nearest else "see the options in --help"
                raise SpecError(f"there is no option {name!r}", where=str(file), hint=hint)
            text = value if isinstance(value, bool) else str(value)  # as if it had been typed
            try:
                option.process_value(ctx, text)
            except typer.BadParameter as error:
                raise SpecError(f"{name}: {error.message}", where=str(file)) from None
            ctx.default_map[option.name] = text
    return file


def read_toml(file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot be read as TOML ({error})", where=str(file)) from None
    for name, value in content.items():
        if isinstance(value, dict | list):
            raise SpecError(f"{name}: one value was expected", where=str(file), hint="a file of options has no tables")
    return content


def write_toml(options: Mapping[str, Any]) -> str:
    """Without what is None."""
    told = (f"{name} = {_value(value)}\n" for name, value in options.items() if value is not None)
    return "".join(told)


def flags_of(option: Any) -> list[str]:
    """Its names without the dashes."""
    return [name.lstrip("-") for name in option.opts]


def settle(
    ctx: typer.Context, groups: Iterable[Sequence[str]], dependent: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The options by name. Of each group only one can be given; one on the command line silences those of the file.
    Of each pair in `dependent` the first says nothing without the second."""
    given = dict(ctx.params)
    flags = {option.name: option.opts[0] for option in ctx.command.params}
    for group in groups:
        named = [name for name in group if given[name] is not None]
        typed = [name for name in named if _was_typed(ctx, name)]
        for name in set(named) - set(typed) if typed else ():
            given[name] = None
        if len(typed or named) > 1:
            told = " and ".join(flags[name] for name in typed or named)
            raise SpecError(f"{told} cannot both be given", hint="they say the same in different ways")
    for name, other in dependent:
        if _was_typed(ctx, name) and given[other] is None:
            raise SpecError(f"{flags[name]} says nothing without {flags[other]}", hint=f"leave out {flags[name]}")
    return given


def _was_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _value(value: Any) -> str:
    if isinstance(value, Path):
        value = str(value)
    # TOML writes strings, numbers and truth values as JSON does.
    return json.dumps(value, ensure_ascii=False)
