"""What holds for every command: help with an example, and options that go through a config file and back."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import click
import pytest

from bertie.cli.app import VERBS, bertie
from bertie.cli.command import JobCommand

Run = Callable[..., CompletedProcess[str]]


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


ALL = dict(commands(bertie))
JOBS = {words: command for words, command in ALL.items() if isinstance(command, JobCommand)}


def minimal(command: JobCommand) -> list[str]:
    """Words that give every required option. Nothing is run, so that they need not make sense."""
    words: list[str] = []
    for option in command.options:
        if option.field.is_required():
            value = "1" if option.field.annotation is int else "x"
            words += [value] if option.extra.get("argument") else [f"--{option.name.replace('_', '-')}", value]
    return words


def test_every_verb_of_the_table_is_loaded() -> None:
    assert {words[0] for words in ALL} == set(VERBS)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_has_an_example_and_fits(words: tuple[str, ...], run_bertie: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = run_bertie(*words, "--help")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.rstrip().splitlines()
    assert lines[-2].strip() == "Example:" and lines[-1].strip().startswith(f"bertie {words[0]}")
    assert len(lines) <= 60 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("words", JOBS, ids=" ".join)
def test_all_help_describes_every_option(words: tuple[str, ...], run_bertie: Run) -> None:
    shown = run_bertie(*words, "--help-all").stdout
    for option in JOBS[words].options:
        assert option.field.description, option.name
        name = option.name.upper() if option.extra.get("argument") else f"--{option.name.replace('_', '-')}"
        assert name in shown
    for flag in ("--config", "--print-config", "--plugin", "--quiet", "--json"):
        assert flag in shown


@pytest.mark.parametrize("words", JOBS, ids=" ".join)
def test_a_printed_config_is_read_back(words: tuple[str, ...], run_bertie: Run, tmp_path: Path) -> None:
    printed = run_bertie(*words, *minimal(JOBS[words]), "--print-config")
    assert printed.returncode == 0, printed.stderr
    file = tmp_path / "config.toml"
    file.write_text(printed.stdout, encoding="utf-8")
    tomllib.loads(printed.stdout)
    again = run_bertie(*words, "--config", file, "--print-config")
    assert (again.returncode, again.stdout) == (0, printed.stdout), again.stderr


@pytest.mark.parametrize("words", JOBS, ids=" ".join)
def test_a_name_of_an_option_is_unique(words: tuple[str, ...]) -> None:
    names = [option.name for option in JOBS[words].options]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("words", JOBS, ids=" ".join)
def test_an_unknown_option_of_a_config_file_is_named(words: tuple[str, ...], run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("no-such-option = 1\n")
    done = run_bertie(*words, "--config", tmp_path / "c.toml", "--print-config")
    assert done.returncode == 2 and "there is no option" in done.stderr


@pytest.mark.parametrize("words", JOBS, ids=" ".join)
def test_no_two_options_or_groups_of_a_job_have_one_name(words: tuple[str, ...]) -> None:
    options = JOBS[words].job.options()
    names = [one.name for one in options] + list(dict.fromkeys(one.group for one in options))
    assert len(set(names)) == len(names)
