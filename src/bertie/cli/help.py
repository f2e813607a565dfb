"""Writes the help of a command: the common options by group, or all of them with --help-all."""

from typing import TYPE_CHECKING

import click

from bertie.jobs.job import Option

if TYPE_CHECKING:
    from bertie.cli.command import JobCommand


def write_help(command: "JobCommand", ctx: click.Context, formatter: click.HelpFormatter) -> None:
    show_all = ctx.meta.get("help_all", False) or sum(map(_is_listed, command.options)) == 0
    command.format_usage(ctx, formatter)
    command.format_help_text(ctx, formatter)
    records = {str(one.name): one.get_help_record(ctx) for one in command.params}
    groups: dict[str, list[tuple[str, str]]] = {}
    for option in command.options:
        if not (show_all or _is_listed(option)):
            continue
        flags = (records[option.name] or (option.name.upper(), ""))[0].split(" INTEGER RANGE")[0]
        title = option.title or ("Arguments" if option.extra.get("argument") else "Options")
        groups.setdefault(title, []).append((flags, command.in_flags(_described(option))))
    for title, rows in groups.items():
        with formatter.section(title):
            formatter.write_dl(rows)
    own = [record for name, record in records.items() if record and name not in {one.name for one in command.options}]
    hidden = 0 if show_all else sum(not _is_listed(option) for option in command.options)
    with formatter.section("Every command"):
        formatter.write_dl(own)
    if hidden:
        formatter.write_paragraph()
        formatter.write_text(f"--help-all shows {hidden} more {'option' if hidden == 1 else 'options'}.")
    formatter.write_paragraph()
    formatter.write(f"Example:\n  {command.job.example}\n")


def _is_listed(option: Option) -> bool:
    """Whether the short help has it: what is required, what is common, and what belongs to the task."""
    marked = any(option.extra.get(key) for key in ("common", "needed", "argument"))
    return marked or option.field.is_required() or option.group == "task_options"


def _described(option: Option) -> str:
    text, default = option.field.description or "", option.field.default
    if option.field.is_required() or option.extra.get("needed"):
        return f"{text} [required]"
    if default is True and isinstance(option.field.annotation, type):
        return f"{text} [default: yes]"
    if default is None or isinstance(default, bool) or default in ((), "", {}):
        return text
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    return f"{text} [default: {default:g}]" if isinstance(default, float) else f"{text} [default: {default}]"
