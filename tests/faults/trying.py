"""Tries a command in a process of its own, with limits, and judges what became of it.

The process is a fork of this one, which has torch and bertie loaded and computes nothing itself: a try takes a fraction
of a second.
"""

import importlib
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECONDS, GIGABYTES = 120, 4

# What a try may end in. The last four must not happen.
OUTCOMES = ("clean error", "announced", "recovered", "same result", "opened")
BAD = ("silent wrong", "loss", "traceback", "crash or hang")


@dataclass(frozen=True)
class Ran:
    code: int  # below 0: the signal that ended it
    stdout: str
    stderr: str

    @property
    def fault(self) -> str | None:
        """ "traceback" or "crash or hang" where it ended in neither a result nor a sentence."""
        if self.code < 0:
            return "crash or hang"
        if "Traceback (most recent call last)" in self.stderr or self.code not in (0, 2, 130):
            return "traceback"
        return None

    @property
    def is_clean_error(self) -> bool:
        """One sentence, or click's usage lines and one."""
        said = [line for line in self.stderr.splitlines() if line.strip() and not re.match(r"Usage:|Try '", line)]
        return self.code == 2 and bool(said)


@dataclass
class Tally:
    """One row of the table."""

    fault: str
    component: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)  # what went wrong, one line each
    skipped: str = ""

    @property
    def tries(self) -> int:
        return self.outcomes.total()

    @property
    def num_bad(self) -> int:
        return sum(self.outcomes[name] for name in BAD)

    def add(self, outcome: str, what: str = "", ran: Ran | None = None) -> None:
        self.outcomes[outcome] += 1
        if outcome in BAD:
            last = (ran.stderr.strip().splitlines() or [""])[-1][:200] if ran else ""
            self.failures.append(f"{self.fault}, {self.component}: {what}: {outcome}: {last}")


def fork(
    arguments: Sequence[object], printed: Path, before: Callable[[], object] | None = None, seconds: int = SECONDS
) -> int:
    """Starts a command; returns its process number. `before` is called in the new process."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTES << 30, GIGABYTES << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(printed.with_suffix(f".{name}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if before is not None:
            before()
        from bertie.cli.app import main

        main([str(argument) for argument in arguments])
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def wait(process: int, printed: Path) -> Ran:
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    texts = [printed.with_suffix(f".{name}").read_text("utf-8", errors="replace") for name in ("out", "err")]
    return Ran(code, *texts)


def run(*arguments: object, before: Callable[[], object] | None = None, seconds: int = SECONDS) -> Ran:
    """Runs a command to its end."""
    with tempfile.TemporaryDirectory(prefix="bertie-try-") as folder:
        printed = Path(folder) / "printed"
        return wait(fork(arguments, printed, before, seconds), printed)


def done(*arguments: object) -> Ran:
    """Runs a command that must work."""
    ran = run(*arguments)
    assert ran.code == 0, f"{' '.join(map(str, arguments))}: {ran.stderr}"
    return ran


def load_everything() -> None:
    """Imports what the commands import, so that no try has to."""
    import torch._dynamo  # noqa: F401

    for name in (
        *("text.corpus_jobs", "text.corpus_views", "text.vocab", "training.pretrain", "training.runs"),
        *("finetuning.evaluate", "finetuning.finetune", "finetuning.predict", "embed", "fill"),
    ):
        importlib.import_module(f"bertie.jobs.{name}")
