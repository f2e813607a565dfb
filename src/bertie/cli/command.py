"""Turns a job into a command: its options into flags, its events into progress, its result into output."""

import inspect
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bertie.cli.display import Display, console
from bertie.cli.flags import SETTINGS, as_paths, parameter
from bertie.errors import SpecError, UserError
from bertie.jobs.job import PLUGIN, Job, read_config
from bertie.jobs.options.toml import to_toml

HELP_WIDTH = 100


class JobCommand(click.Command):
    """One verb. `fixed` are options that the verb's name decides, like the task of `finetune classify`."""

    def __init__(self, name: str, job: type[Job], fixed: dict[str, Any] | None = None):
        self.job, self.fixed = job, fixed or {}
        self.options = [one for one in job.options() if one.name not in self.fixed]
        super().__init__(
            name,
            params=[*map(parameter, self.options), *SETTINGS.values()],
            help=inspect.getdoc(job),
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
        )

    def invoke(self, ctx: click.Context) -> None:
        given = dict(ctx.params)
        config, print_config, _, quiet, as_json, help_all = (given.pop(name) for name in SETTINGS)
        if help_all:
            ctx.meta["help_all"] = True
            click.echo(ctx.get_help())
            return
        typed = {name: value for name, value in given.items() if value is not None and value != ()}
        try:
            options = {**self.fixed, **(self._from_file(config, typed) if config else {}), **typed}
            for one in self.options:
                if one.extra.get("paths") and one.name in options:
                    options[one.name] = as_paths(options[one.name])
            job = self.job.from_options(options)
            if print_config:
                from bertie.plugins import files  # which waits for torch

                click.echo(to_toml({PLUGIN: list(files()), **job.given()} if files() else job.given()), nl=False)
                return
            for one in self.options:
                if one.extra.get("needed") and options.get(one.name) is None:
                    raise SpecError(f"`{one.name}` is missing")
            with Display(console, quiet=quiet, as_json=as_json, in_flags=self.in_flags) as display:
                result = job.run(display)
        except UserError as error:
            raise _rewritten(error, self.in_flags) from None
        if result is not None:
            self.show(result, as_json)

    def show(self, result: Any, as_json: bool) -> None:
        if as_json:
            click.echo(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            result.print(Console(emoji=False, soft_wrap=False))

    def _from_file(self, config: str, typed: Collection[str]) -> dict[str, Any]:
        """The options of a config file, without alternatives to those that were typed, which win."""
        silenced = {other for names in self.job.exclusive if set(names) & set(typed) for other in names}
        flat: dict[str, Any] = {}
        content = read_config(Path(config))
        content.pop(PLUGIN, None)  # loaded before the command was found
        for name, value in content.items():
            is_group = isinstance(value, dict) and name in {one.group for one in self.options}
            flat |= value if is_group else {name: value}
        self.job.check_names(flat, config)
        return {name: value for name, value in flat.items() if name not in silenced}

    def in_flags(self, text: str) -> str:
        """Options, which messages name in backticks, as flags: `max_length=64` -> --max-length 64."""
        flags = {one.name: f"--{one.name.replace('_', '-')}" for one in self.options if not one.extra.get("argument")}
        flags |= {one.name: one.name.upper() for one in self.options if one.extra.get("argument")}
        flags["plugin"] = "--plugin"

        def flag(found: re.Match[str]) -> str:
            name, sign, value = found[1].partition("=")
            return flags[name] + (f" {value}" if sign else "") if name in flags else found[0]

        return re.sub(r"`([a-z_]+(?:=[^`]*)?)`", flag, text)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.help = self.in_flags(self.help or "")
        super().format_help_text(ctx, formatter)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from bertie.cli.help import write_help

        write_help(self, ctx, formatter)


def _rewritten(error: UserError, words: Any) -> UserError:
    error.what, error.hint = words(error.what), error.hint and words(error.hint)
    return error
