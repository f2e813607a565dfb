"""One benchmark at a time, whatever way the holder ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.lock import MachineBusyError, only_one

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from benchmarks.lock import only_one
with only_one(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(file: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_benchmark_is_refused_and_told_who_runs(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    process = holder(file)
    try:
        told = rf"another benchmark is running \(process {process.pid}\)"
        with pytest.raises(MachineBusyError, match=told), only_one(file):
            pytest.fail("two held the lock")
    finally:
        process.communicate("")
    with only_one(file):
        assert file.read_text().strip() == str(os.getpid())


def test_a_killed_holder_leaves_no_lock_behind(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    process = holder(file)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with only_one(file):
        pass


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with pytest.raises(ZeroDivisionError), only_one(file):
        _ = 1 / 0
    with only_one(file):
        pass


def test_a_file_that_cannot_be_written_can_be_locked(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch(mode=0o444)
    with only_one(file), pytest.raises(MachineBusyError), only_one(file):
        pytest.fail("two held the lock")
