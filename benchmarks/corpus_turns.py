"""One command as a user would run it: the command and the folder it fills enter, what it took leaves.

Time is wall-clock from the start of the process to its end, the start of the interpreter included.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environment import ROOT
from benchmarks.load import busy_seconds

MEMORY_SECONDS, DISK_SECONDS = 0.02, 0.25  # between two looks
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Turn:
    seconds: float
    processor_seconds: float  # of the process and all its children
    memory: int | None  # bytes, the largest sum over the process and its descendants at one time
    disk: int  # bytes, the most that the folder held at one time
    disk_left: int  # bytes, what it holds in the end
    foreign: float | None  # processor seconds that others used meanwhile
    printed: str


def take_turn(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Turn:
    """Run the command to its end. When it fails, or we are stopped, none of its processes stays."""
    busy, begun = busy_seconds(), time.perf_counter()
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stream,
            start_new_session=True,
            text=True,
            encoding="utf-8",
        )
    watcher = Watcher(process.pid, folder)
    try:
        assert process.stdout is not None
        watcher.start()
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begun
    finally:
        watcher.end()
        end_group(process.pid)
        if process.returncode is None:
            process.wait()
    if process.returncode:
        last = [*printed.strip().splitlines(), *log.read_text(encoding="utf-8", errors="replace").strip().splitlines()]
        told = "\n  ".join(last[-15:] or ["it printed nothing"])
        raise RuntimeError(f"{' '.join(command)}\nended with code {process.returncode}:\n  {told}")
    spent = used.ru_utime + used.ru_stime
    foreign = None if busy is None else max(0.0, (busy_seconds() or busy) - busy - spent)
    left = folder_bytes(folder)
    return Turn(seconds, spent, watcher.memory or None, max(watcher.disk, left), left, foreign, printed)


def end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


class Watcher(threading.Thread):
    """Looks at the memory of a process and its descendants, and at the size of a folder, and keeps the largest."""

    def __init__(self, pid: int, folder: Path):
        super().__init__(daemon=True)
        self.pid, self.folder = pid, folder
        self.memory = self.disk = 0
        self._over = threading.Event()

    def run(self) -> None:
        next_disk = 0.0
        while not self._over.wait(MEMORY_SECONDS):
            self.memory = max(self.memory, sum(map(resident_bytes, family(self.pid))))
            if time.perf_counter() >= next_disk:
                self.disk = max(self.disk, folder_bytes(self.folder))
                next_disk = time.perf_counter() + DISK_SECONDS

    def end(self) -> None:
        self._over.set()
        if self.is_alive():
            self.join()


def family(pid: int) -> Iterator[int]:
    """The process and its descendants; nothing where the system has no /proc."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        tasks = Path(f"/proc/{one}/task")
        try:
            children = [(task / "children").read_text(encoding="utf-8").split() for task in tasks.iterdir()]
        except OSError:  # it ended just now
            continue
        yield one
        waiting += [int(child) for found in children for child in found]


def resident_bytes(pid: int) -> int:
    """Pages that several processes share count in each of them: the sum is an upper bound."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def folder_bytes(folder: Path) -> int:
    """What the files take on the disk. Files may go while we look."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total
