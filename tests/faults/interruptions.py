"""Kills, full and read-only disks, two processes on one folder: a sentence, and the same command then ends in the
result of an undisturbed one."""

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.trying import Ran, Tally, fork, run, wait
from tests.faults.workplace import Command, Workplace

FINISHED = ("already", "exists")  # how a command says that there is nothing left to do


def rows(place: Workplace, work: Path, tries: int) -> Iterator[Tally]:
    """So many tries of each fault."""
    for command in place.commands():
        shutil.rmtree(work / "whole", ignore_errors=True)
        (work / "whole").mkdir()
        begun = time.monotonic()
        ran = run(*command.words(work / "whole" / command.out))
        seconds, wanted = time.monotonic() - begun, command.digest(work / "whole" / command.out)
        assert ran.code == 0 and wanted, f"{command.name}: {ran.stderr}"
        yield try_kills(command, work, wanted, seconds, tries)
        yield try_failed_writes(command, work, wanted, tries)
        yield try_small_disks(command, work, wanted, tries)
        yield try_read_only(command, work, wanted, tries)
        yield try_two(command, work, wanted, tries)


def fresh(work: Path, command: Command) -> Path:
    shutil.rmtree(work / "tried", ignore_errors=True)
    (work / "tried").mkdir()
    return work / "tried" / command.out


def finish(tally: Tally, command: Command, out: Path, wanted: str, what: str, first: str) -> None:
    """Runs the command again, and compares its result with that of an undisturbed run."""
    ran = run(*command.words(out))
    if ran.fault:
        tally.add(ran.fault, f"{what}, then again", ran)
    elif ran.code == 2 and not any(word in ran.stderr for word in FINISHED):
        tally.add("loss", f"{what}, then again", ran)
    else:
        tally.add(first if command.digest(out) == wanted else "loss", what, ran)


def try_kills(command: Command, work: Path, wanted: str, seconds: float, tries: int) -> Tally:
    tally, chance = Tally("kill", command.name), random.Random(command.name)
    for number in range(tries):
        out = fresh(work, command)
        process = fork(command.words(out), work / "printed")
        time.sleep(seconds * (number + chance.random()) / tries)
        os.kill(process, signal.SIGKILL)
        wait(process, work / "printed")
        finish(tally, command, out, wanted, f"killed in try {number}", "recovered")
    return tally


def judge_failure(tally: Tally, ran: Ran, what: str) -> bool:
    """Whether the command was stopped as it should be; else the try is counted here."""
    if ran.fault:
        tally.add(ran.fault, what, ran)
    elif ran.code == 2:
        return True
    return False


def try_failed_writes(command: Command, work: Path, wanted: str, tries: int) -> Tally:
    """The disk is full at one of the moments when what was written has to be safe."""
    tally, chance = Tally("full disk at a sync", command.name), random.Random(command.name)
    for _ in range(tries):
        out, number = fresh(work, command), chance.randrange(24)
        ran = run(*command.words(out), before=lambda: fill_disk_at(number))  # noqa: B023
        if judge_failure(tally, ran, f"full at sync {number}"):
            finish(tally, command, out, wanted, f"full at sync {number}", "recovered")
        elif ran.code == 0:
            tally.add("same result" if command.digest(out) == wanted else "silent wrong", f"sync {number}", ran)
    return tally


def fill_disk_at(number: int) -> None:
    real, left = os.fsync, number

    def fsync(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    os.fsync = fsync  # type: ignore[assignment]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], object] | None]:
    """A disk of a size, and a function that remounts it; None where mounting is not allowed."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        yield None
        return
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


NO_MOUNT = "only root may mount a small disk"


def try_small_disks(command: Command, work: Path, wanted: str, tries: int) -> Tally:
    tally, disk = Tally("full disk", command.name), work / "disk"
    size = max(1, sum(path.stat().st_size for path in (work / "whole").rglob("*") if path.is_file()) >> 10)
    for number in range(tries):
        kilobytes = max(4, size * (number + 1) // (tries + 1))
        with small_disk(disk, f"{kilobytes}k") as remount:
            if remount is None:
                tally.skipped = NO_MOUNT
                break
            ran = run(*command.words(disk / command.out))
            remount("size=200m")
            if judge_failure(tally, ran, f"a disk of {kilobytes} KB"):
                if "disk is full" not in ran.stderr and "No space left" not in ran.stderr:
                    tally.add("silent wrong", f"a disk of {kilobytes} KB: another reason is given", ran)
                else:
                    finish(tally, command, disk / command.out, wanted, f"a disk of {kilobytes} KB", "recovered")
            elif ran.code == 0:
                same = command.digest(disk / command.out) == wanted
                tally.add("same result" if same else "silent wrong", f"a disk of {kilobytes} KB", ran)
    return tally


def try_read_only(command: Command, work: Path, wanted: str, tries: int) -> Tally:
    tally, disk = Tally("read-only disk", command.name), work / "disk"
    for _ in range(min(tries, 2)):
        with small_disk(disk, "200m") as remount:
            if remount is None:
                tally.skipped = NO_MOUNT
                break
            remount("ro")
            ran = run(*command.words(disk / command.out))
            remount("rw")
            if ran.code == 0:
                tally.add("silent wrong", "it claims to have written", ran)
            elif judge_failure(tally, ran, "read-only"):
                finish(tally, command, disk / command.out, wanted, "read-only", "recovered")
    return tally


def try_two(command: Command, work: Path, wanted: str, tries: int) -> Tally:
    """Both may end well, or one of them says that the other is there."""
    tally, chance = Tally("two processes", command.name), random.Random(command.name)
    for number in range(max(1, tries // 2)):
        out = fresh(work, command)
        printed = [work / f"printed-{one}" for one in range(2)]
        processes = []
        for one in printed:
            processes.append(fork(command.words(out), one))
            time.sleep(chance.choice((0.0, 0.05, 0.2)))
        both = [wait(process, one) for process, one in zip(processes, printed, strict=True)]
        if bad := [ran for ran in both if ran.fault]:
            tally.add(bad[0].fault or "", f"try {number}", bad[0])
        else:
            finish(tally, command, out, wanted, f"try {number}", "recovered")
    return tally
