"""The runner: cells enter, their results leave. What is finished is not done again; what was begun goes on."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

from bertie.errors import UserError
from experiments.cell import PEERS, PYTHON, Cell, Command, Result, in_order
from experiments.store import ROOT, Store, code_digest

TELL_SECONDS, LOOK_SECONDS = 30.0, 0.2  # between two lines about a command; between two looks at it
QUOTED = 8  # lines of a failed command's log
OFFLINE = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class CellFailedError(UserError):
    """A command of a cell did not end well."""


@dataclass
class Outcome:
    results: dict[str, Result] = field(default_factory=dict)  # by the cell's digest
    failures: dict[str, str] = field(default_factory=dict)  # likewise


class Runner:
    """`peers` gives the Python of the peers' environment; it is asked only when a command needs it. So many `jobs` run
    at once, with an equal share of the cores each."""

    def __init__(self, store: Store, peers: Callable[[], Path], say: Callable[[str], None], jobs: int = 1):
        self.store, self.peers, self.say, self.jobs = store, peers, say, jobs
        self._stopping = Event()

    def run(self, cells: Iterable[Cell]) -> Outcome:
        """Every cell, after what it needs. One that fails stops only those that need it."""
        ordered, outcome = in_order(cells), Outcome()
        futures: dict[str, Future[Result]] = {}
        with self.store.locked() as lock, ThreadPoolExecutor(self.jobs) as pool:
            try:
                for number, cell in enumerate(ordered, start=1):
                    told = f"[{number}/{len(ordered)}] {cell.title}"
                    # Needs were handed in before, so they run or are done: waiting for them inside a job is safe.
                    needs = [(need.title, futures[need.digest]) for need in cell.needs.values()]
                    futures[cell.digest] = pool.submit(self._after, needs, cell, told, lock)
                for digest, future in futures.items():
                    if isinstance(error := future.exception(), UserError):
                        outcome.failures[digest] = str(error)
                    else:
                        outcome.results[digest] = future.result()
            except BaseException:
                self._stopping.set()
                pool.shutdown(cancel_futures=True)
                raise
        return outcome

    def _after(self, needs: Sequence[tuple[str, Future[Result]]], cell: Cell, told: str, lock: int) -> Result:
        try:
            for title, need in needs:
                if need.exception() is not None:
                    raise CellFailedError(f"it needs {title}, which failed")
            return self._result(cell, told, lock)
        except UserError as error:
            self.say(f"{told}: FAILED: {error}")
            raise

    def _result(self, cell: Cell, told: str, lock: int) -> Result:
        kept = self.store.result(cell)
        if kept is not None:
            self.say(f"{told}: finished before")
            return kept
        work = self.store.work(cell)
        if work.exists() and not cell.resumes:
            shutil.rmtree(work)
        about = f", about {minutes_told(cell.minutes)}" if cell.minutes else ""
        self.say(f"{told}: {'goes on' if work.exists() else 'begins'}{about}; log in {self.store.log(cell)}")
        work.parent.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        commands = [self._filled(cell, command) for command in cell.commands]
        for command in commands:
            self._run(command, self.store.log(cell), lock, lambda line: self.say(f"{told}: {line}"))
        seconds = time.monotonic() - begun
        result = {**cell.read(work), "made": made(cell, commands, seconds)}
        self.store.keep(cell, result)
        self.say(f"{told}: done in {minutes_told(seconds / 60)}")
        return result

    def _filled(self, cell: Cell, command: Command) -> list[str]:
        places: dict[str, object] = {name: self.store.work(need) for name, need in cell.needs.items()}
        places = {**places, **cell.inputs, "folder": self.store.work(cell)}
        who = {PYTHON: lambda: Path(sys.executable), PEERS: self.peers}
        return [str(who[word]()) if word in who else word.format(**places) for word in command]

    def _run(self, command: list[str], log: Path, lock: int, say: Callable[[str], None]) -> None:
        share = {} if self.jobs == 1 else {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // self.jobs))}
        run_command(command, log, lock, say, share, self._stopping)


def run_command(
    command: list[str],
    log: Path,
    lock: int,
    say: Callable[[str], None],
    environment: Mapping[str, str],
    stopping: Event,
) -> None:
    """To its end. When we are stopped, the command is asked to stop too, once, so that it can save."""
    with log.open("ab") as printed:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **OFFLINE, **environment},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            start_new_session=True,  # Ctrl-C reaches us alone
        )
    try:
        next_time, before = time.monotonic() + TELL_SECONDS, ""
        while process.poll() is None:
            if stopping.wait(LOOK_SECONDS):
                raise CellFailedError("it was stopped")
            if time.monotonic() >= next_time:
                line = last_line(log)
                if line != before:
                    say(line)
                next_time, before = time.monotonic() + TELL_SECONDS, line
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    if process.returncode:
        lines = log.read_text("utf-8", errors="replace").splitlines()[-QUOTED:]
        what = f"a command ended with code {process.returncode}: {' '.join(command)}"
        raise CellFailedError("\n  ".join([what, *lines]), where=str(log))


def last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:200]


def made(cell: Cell, commands: list[list[str]], seconds: float) -> dict[str, Any]:
    """By whom and when; `seconds` are those of the last sitting."""
    from bertie.machine import cpu_name, num_cores  # loads torch, which the runner itself can do without

    return {
        "cell": cell.title,
        "commands": commands,
        "seconds": round(seconds, 1),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": code_digest(),
        "machine": f"{cpu_name()}, {num_cores()} cores",
    }


def minutes_told(minutes: float) -> str:
    seconds = round(minutes * 60)
    return f"{seconds} s" if seconds < 120 else f"{round(seconds / 60):,} min"
