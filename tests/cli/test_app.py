import subprocess
import sys
import types
from collections.abc import Callable, Iterator

import pytest
import typer

from bertie.cli.app import VERBS, Verb, build_command, main
from bertie.errors import InputError

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., None]], None]:
    """Register a function as the verb `try`."""

    def register(function: Callable[..., None]) -> None:
        module = types.ModuleType("a_verb_of_the_tests")
        module.__dict__["function"] = function
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(VERBS, "try", Verb(f"{module.__name__}:function", "Try.", "bertie try [MASK]"))

    return register


def test_a_mistake_of_the_user_is_one_sentence_and_exit_code_2(
    verb: Callable[[Callable[..., None]], None], run_bertie: Run
) -> None:
    def fail() -> None:
        raise InputError("no [MASK] in the text [bold]at all[/bold]", where="a.txt:3", hint="write [MASK] " + "x" * 200)

    verb(fail)
    done = run_bertie("try")
    assert done.returncode == 2
    assert done.stdout == ""
    expected = "a.txt:3: no [MASK] in the text [bold]at all[/bold]; write [MASK] " + "x" * 200 + "\n"
    assert done.stderr == expected, "one line, brackets kept, no traceback"


def test_a_bug_is_not_hidden(verb: Callable[[Callable[..., None]], None]) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    verb(fail)
    with pytest.raises(ZeroDivisionError):
        main(["try"])


def test_an_interrupt_leaves_with_130_and_a_line(verb: Callable[[Callable[..., None]], None], run_bertie: Run) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    verb(interrupt)
    done = run_bertie("try")
    assert (done.returncode, done.stderr.strip()) == (130, "Interrupted.")


def test_a_verb_that_says_itself_how_it_was_interrupted_is_not_repeated(
    verb: Callable[[Callable[..., None]], None], run_bertie: Run
) -> None:
    def leave() -> None:
        raise typer.Exit(130)

    verb(leave)
    done = run_bertie("try")
    assert (done.returncode, done.stderr) == (130, "")


def test_help_keeps_brackets_and_ends_with_the_example(
    verb: Callable[[Callable[..., None]], None], run_bertie: Run
) -> None:
    def fill(text: str) -> None:
        """Fill [MASK] in a text."""

    verb(fill)
    done = run_bertie("try", "--help")
    assert done.returncode == 0
    assert "Fill [MASK] in a text." in done.stdout
    assert done.stdout.rstrip().endswith("Example:\n    bertie try [MASK]")


def commands() -> Iterator[list[str]]:
    """Every command and sub-command there is, as words to type."""

    def walk(words: list[str], command: object) -> Iterator[list[str]]:
        yield words
        for name, child in getattr(command, "commands", {}).items():
            yield from walk([*words, name], child)

    for name, lazy in build_command().commands.items():
        yield from walk([name], lazy.load())  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_explains_itself_with_an_example(words: list[str], run_bertie: Run) -> None:
    done = run_bertie(*words, "--help")
    assert done.returncode == 0
    *_, heading, last = done.stdout.rstrip().splitlines()
    assert heading.strip() == "Example:"
    assert last.strip().startswith(" ".join(["bertie", *words[:1]]))


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
        "verb = sys.modules['verb'] = types.ModuleType('verb')\n"
        "verb.function = lambda: sys.stdout.write('buffered') and None\n"
        "VERBS['try'] = Verb('verb:function', 'Try.', 'bertie try')\nmain(['try'])"
    )
    assert (done.returncode, done.stderr) == (1, "")
