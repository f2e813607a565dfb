"""A job as a command: options as flags, a config file under them, errors and messages in flags, output."""

import json
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, ClassVar

import pytest

from bertie.cli.app import VERBS, Verb
from bertie.errors import SpecError
from bertie.jobs.job import Group, Job, option
from bertie.jobs.result import Result
from bertie.reporting.events import OnEvent, ignore, message, warning

Run = Callable[..., CompletedProcess[str]]


class Budget(Group):
    title: ClassVar[str] = "Budget"
    steps: int | None = option(None, "Steps.", common=True, ge=1)
    time: float | None = option(None, "Seconds.", common=True)
    batch_tokens: int = option(64, "Tokens.")


class WalkJob(Job):
    """Walk somewhere."""

    verb: ClassVar[str] = "walk"
    example: ClassVar[str] = "bertie walk home --out x"
    exclusive: ClassVar[Any] = (("steps", "time"),)
    where: str = option(help="Where to.", argument=True)
    files: tuple[Path, ...] = option((), "Files.", many=True, paths=True)
    kind: str = option("slow", "Kind.", common=True)
    with_hat: bool = option(False, "With a hat.")
    out: Path | None = option(None, "Folder.", needed=True)
    budget: Budget = Budget()

    def run(self, on_event: OnEvent = ignore) -> "Walk":
        on_event(message("going with `batch_tokens` of `kind=slow` and `other`"))
        on_event(warning("rain"))
        if self.kind == "never":
            raise SpecError("`kind=never` is not `where`", hint="use `batch_tokens`, or `nothing`")
        return Walk(self.given())


class Walk(Result):
    def __init__(self, given: dict[str, Any]):
        self.options = given

    def to_json(self) -> Any:
        return self.options

    def parts(self) -> Iterable[str]:
        yield f"walked [bold]{self.options['where']}"


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch, run_bertie: Run) -> Run:
    module = types.ModuleType("tests.walking")
    module.__dict__["WalkJob"] = WalkJob
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(VERBS, "walk", Verb("Walk.", f"{module.__name__}:WalkJob"))
    return lambda *words: run_bertie("walk", *words)


def given(done: CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_flags_become_options_by_group(walk: Run) -> None:
    done = walk("home", "--out", "x", "--steps", 5, "--with-hat", "--files", "a", "--files", "b", "--json")
    assert given(done) == {
        "where": "home",
        "out": "x",
        "with_hat": True,
        "files": ["a", "b"],
        "budget": {"steps": 5},
    }


def test_a_result_is_printed_and_messages_are_beside_it(walk: Run) -> None:
    done = walk("home", "--out", "x")
    assert done.stdout == "walked [bold]home\n"
    assert done.stderr == "going with --batch-tokens of --kind slow and `other`\nrain\n"


def test_quiet_leaves_the_result_and_warnings(walk: Run) -> None:
    done = walk("home", "--out", "x", "--quiet")
    assert (done.stdout, done.stderr) == ("walked [bold]home\n", "rain\n")


def test_errors_name_flags(walk: Run) -> None:
    done = walk("home", "--out", "x", "--kind", "never", "--quiet")
    assert done.returncode == 2
    assert done.stderr.endswith("--kind never is not WHERE; use --batch-tokens, or `nothing`\n")
    mistakes: list[tuple[list[object], str]] = [
        (["home", "--out", "x", "--steps", "many"], "--steps: input should be a valid integer"),
        (["home", "--out", "x", "--steps", 0], "--steps: input should be greater than or equal to 1"),
        (["home", "--out", "x", "--steps", 4, "--time", 5], "--steps and --time cannot both be given"),
        (["--out", "x"], "WHERE is missing"),
        (["home"], "--out is missing"),
        (["home", "--stepz", 3], "--stepz"),
    ]
    for words, mistake in mistakes:
        done = walk(*words)
        assert done.returncode == 2 and mistake in done.stderr, done.stderr


def test_a_file_gives_what_flags_would(walk: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('where = "home"\nout = "x"\nsteps = 5\nbatch-tokens = 1_000\nfiles = ["a"]\n')
    expected = {"where": "home", "out": "x", "files": ["a"], "budget": {"steps": 5, "batch_tokens": 1000}}
    assert given(walk("--config", file, "--json")) == expected
    file.write_text('where = "home"\nout = "x"\nfiles = ["a"]\n[budget]\nsteps = 5\nbatch_tokens = 1_000\n')
    assert given(walk("--config", file, "--json")) == expected


def test_flags_win(walk: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('where = "home"\nout = "x"\nsteps = 5\nbatch_tokens = 7\n')
    found = given(walk("--config", file, "--batch-tokens", 8, "--out", "y", "--json"))
    assert (found["budget"], found["out"]) == ({"steps": 5, "batch_tokens": 8}, "y")
    found = given(walk("there", "--config", file, "--time", 3, "--json"))
    assert (found["where"], found["budget"]) == ("there", {"time": 3, "batch_tokens": 7}), "also over an alternative"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("batch-token = 5", "c.toml: there is no option `batch_token`; did you mean --batch-tokens?"),
        ("config = 'x'", "there is no option `config`"),
        ("steps = 'many'", "--steps: input should be a valid integer"),
        ("steps = 0", "--steps: input should be greater"),
        ("steps = [1, 2]", "--steps: input should be a valid integer"),
        ("[steps]\na = 1", "--steps: input should be a valid integer"),
        ("steps = 5\ntime = 3", "cannot both be given"),
        ("a = = b", "cannot be read as TOML"),
    ],
)
def test_mistakes_in_a_file(walk: Run, tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    done = walk("home", "--out", "x", "--config", tmp_path / "c.toml")
    assert done.returncode == 2 and complaint in done.stderr, done.stderr


def test_the_printed_config_holds_what_was_given(walk: Run, tmp_path: Path) -> None:
    printed = walk('a "b" \\ ü', "--steps", 5, "--print-config").stdout
    assert printed == 'where = "a \\"b\\" \\\\ ü"\n\n[budget]\nsteps = 5\n'
    (tmp_path / "c.toml").write_text(printed, encoding="utf-8")
    assert walk("--config", tmp_path / "c.toml", "--print-config").stdout == printed


def test_help_has_the_common_options_and_all_help_the_others(walk: Run) -> None:
    short, whole = walk("--help").stdout, walk("--help-all").stdout
    assert "--steps" in short and "--batch-tokens" not in short and "--help-all shows 3 more options." in short
    assert "--batch-tokens" in whole and "[default: 64]" in whole and "--with-hat" in whole
    assert "Arguments:" in short and "Budget:" in short and "[required]" in short
