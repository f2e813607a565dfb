"""A command seen from outside: its time, the memory of its children, the most that its folder held, its failure."""

import os
import sys
import time
from pathlib import Path

import pytest
from benchmarks.corpus_turns import family, folder_bytes, take_turn

MEGABYTE = 1 << 20

# A child holds 80 MB while a file is there that goes again before the end.
BUSY = """
import os, subprocess, sys, time
os.makedirs(sys.argv[1])
with open(sys.argv[1] + "/passing", "wb") as file:
    file.write(os.urandom(4 << 20))
held = "import time; held = bytearray(80 << 20); held[::4096] = b'x' * len(held[::4096]); time.sleep(0.5)"
subprocess.run([sys.executable, "-c", held], check=True)
os.remove(sys.argv[1] + "/passing")
with open(sys.argv[1] + "/kept", "wb") as file:
    file.write(os.urandom(1 << 20))
print(os.environ["MARK"])
"""
FAILING = """
import subprocess, sys
print("half done")
child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
open(sys.argv[1], "w").write(str(child.pid))
sys.stdout.flush()
sys.exit("it hurts")
"""


def test_memory_of_children_and_passing_files_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    turn = take_turn([sys.executable, "-c", BUSY, str(folder)], folder, {"MARK": "here"}, tmp_path / "log")
    assert turn.printed == "here\n"
    assert turn.seconds >= 0.5
    assert turn.disk >= 4 * MEGABYTE > turn.disk_left >= MEGABYTE
    if Path("/proc/self/task").exists():
        assert turn.memory is not None
        assert 80 * MEGABYTE < turn.memory < 400 * MEGABYTE


def test_a_failed_command_tells_why_and_leaves_no_process(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(RuntimeError, match=r"ended with code 1:\n  half done\n  it hurts"):
        take_turn([sys.executable, "-c", FAILING, str(note)], tmp_path / "out", {}, tmp_path / "log")
    child = int(note.read_text(encoding="utf-8"))
    end = time.monotonic() + 10
    while time.monotonic() < end and is_running(child):
        time.sleep(0.01)
    assert not is_running(child)


def is_running(pid: int) -> bool:
    try:
        # One that nobody waits for stays as a zombie.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_is_gone_has_no_family() -> None:
    assert list(family(2**22 + 1)) == []
    if Path("/proc/self/task").exists():
        assert os.getpid() in family(os.getpid())


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert folder_bytes(tmp_path / "none") == 0
