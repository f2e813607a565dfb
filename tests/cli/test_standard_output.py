"""A full disk or a closed stream behind standard output: one sentence and exit code 2, for every verb."""

import errno
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.cli.standard_output import checked_stdout
from bertie.errors import UserError

FULL = Path("/dev/full")
VERBS = [("recipes",), ("recipes", "--json"), ("recipes", "show", "bert"), ("--help",), ("predict", "--help-all")]
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def run(*words: str, redirect: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bertie", *words]
    return subprocess.run(["/bin/sh", "-c", f'"$@" {redirect}', "sh", *command], capture_output=True, text=True)


@needs_full
@pytest.mark.parametrize("words", VERBS)
def test_a_full_disk_is_one_sentence(words: tuple[str, ...]) -> None:
    done = run(*words, redirect="> /dev/full")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "standard output: the disk is full; free some space, or write elsewhere, then run it again"
    )


def test_a_closed_stream_is_one_sentence() -> None:
    done = run("recipes", redirect=">&-")
    assert done.returncode == 2
    assert done.stderr.strip() == "standard output: it is closed; redirect it to a file, or to /dev/null"


def test_a_reader_that_is_gone_is_no_failure() -> None:
    done = run("recipes", redirect="| true")
    assert done.stderr == ""


class Failing(io.StringIO):
    def __init__(self, fails: Callable[[], None]):
        super().__init__()
        self.fails = fails

    def flush(self) -> None:
        self.fails()


def test_only_standard_output_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sys, "stdout", Failing(fail))
    with pytest.raises(UserError, match=r"standard output: writing failed \(Input/output error\)"), checked_stdout():
        sys.stdout.write("a result")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(OSError, match="another file"), checked_stdout():
        raise OSError(errno.EIO, "another file")
