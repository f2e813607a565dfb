"""The command `bertie`: exit codes, errors, the table of verbs, and who waits for torch."""

import subprocess
import sys
import types
from collections.abc import Callable
from typing import ClassVar

import click
import pytest

from bertie.cli.app import VERBS, Verb, main
from bertie.errors import InputError, Interrupted
from bertie.jobs.job import Job, option
from bertie.reporting.events import OnEvent, ignore

Run = Callable[..., subprocess.CompletedProcess[str]]
Register = Callable[[Callable[[], None]], None]


class TryJob(Job):
    """Try [MASK] in a text."""

    verb: ClassVar[str] = "try"
    example: ClassVar[str] = "bertie try [MASK]"
    work: ClassVar[Callable[[], None]]
    text: str = option("", "A text.", argument=True)

    def run(self, on_event: OnEvent = ignore) -> None:
        type(self).work()


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Registers a verb `try` that calls a function."""

    def register(function: Callable[[], None]) -> None:
        module = types.ModuleType("tests.a_verb")
        module.__dict__["TryJob"] = TryJob
        monkeypatch.setattr(TryJob, "work", staticmethod(function), raising=False)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(VERBS, "try", Verb("Try.", f"{module.__name__}:TryJob"))

    return register


def test_a_mistake_of_the_user_is_one_sentence_and_exit_code_2(verb: Register, run_bertie: Run) -> None:
    def fail() -> None:
        raise InputError("no [MASK] in the text [bold]at all[/bold]", where="a.txt:3", hint="write [MASK] " + "x" * 200)

    verb(fail)
    done = run_bertie("try")
    assert done.returncode == 2
    assert done.stdout == ""
    expected = "a.txt:3: no [MASK] in the text [bold]at all[/bold]; write [MASK] " + "x" * 200 + "\n"
    assert done.stderr == expected, "one line, brackets kept, no traceback"


def test_a_bug_is_not_hidden(verb: Register) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    verb(fail)
    with pytest.raises(ZeroDivisionError):
        main(["try"])


def test_an_interrupt_leaves_with_130_and_a_line(verb: Register, run_bertie: Run) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    verb(interrupt)
    done = run_bertie("try")
    assert (done.returncode, done.stderr.strip()) == (130, "Interrupted.")


def test_work_that_was_stopped_explains_how_to_continue(verb: Register, run_bertie: Run) -> None:
    def interrupt() -> None:
        raise Interrupted("Stopped; run the same command to continue.", exit_code=143)

    verb(interrupt)
    done = run_bertie("try")
    assert (done.returncode, done.stderr.strip()) == (143, "Stopped; run the same command to continue.")


def test_an_exit_code_is_passed_on(verb: Register, run_bertie: Run) -> None:
    def leave() -> None:
        raise click.exceptions.Exit(3)

    verb(leave)
    done = run_bertie("try")
    assert (done.returncode, done.stderr) == (3, "")


def test_help_keeps_brackets_and_ends_with_the_example(verb: Register, run_bertie: Run) -> None:
    verb(lambda: None)
    done = run_bertie("try", "--help")
    assert done.returncode == 0
    assert "Try [MASK] in a text." in done.stdout
    assert done.stdout.rstrip().endswith("Example:\n  bertie try [MASK]")


def test_the_list_of_verbs_and_the_version(run_bertie: Run) -> None:
    listing = run_bertie("--help")
    assert listing.returncode == 0
    for name, known in VERBS.items():
        assert f"  {name} " in listing.stdout
        assert known.summary in listing.stdout, "a summary must fit into its line"
    assert run_bertie("--version").stdout.startswith("bertie 0.")


def test_an_unknown_verb_is_named_with_the_nearest_one(run_bertie: Run) -> None:
    done = run_bertie("machin")
    assert done.returncode == 2
    assert "'machine'" in done.stderr


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_help_does_not_wait_for_torch() -> None:
    done = run_python(
        "import sys\nfrom bertie.cli.app import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    assert 'torch' not in sys.modules, 'torch was imported'"
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_early_causes_no_noise() -> None:
    # The read end is closed before anything is written, as `bertie ... | head -0` does.
    done = run_python(
        "import os, sys\nread, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\n"
        "from bertie.cli.app import main\nmain(['--help'])"
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_a_reader_that_leaves_before_the_last_flush_causes_no_noise() -> None:
    # `write` only fills Python's buffer: the broken pipe shows when the command is over.
    done = run_python(
        "import os, sys, types\nread, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\n"
        "from bertie.cli.app import VERBS, Verb, main\n"
        "import click\n"
        "verb = sys.modules['a.verb'] = types.ModuleType('a.verb')\n"
        "verb.command = click.Command('try', callback=lambda: sys.stdout.write('buffered') and None)\n"
        "VERBS['try'] = Verb('Try.', 'a.verb:command')\nmain(['try'])"
    )
    assert (done.returncode, done.stderr) == (1, "")
