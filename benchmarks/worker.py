"""A contender in a process of its own: a request enters as one JSON line, its answer leaves as one JSON line.

Only the worker whose turn it is may run. All others are stopped by a signal, so that no idle thread of theirs can spin.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT
from benchmarks.load import busy_seconds, process_seconds

Settings = dict[str, int]
END_SECONDS = 10


class Worker:
    """`python -m module` of the contender; what its libraries print goes to the log."""

    def __init__(self, name: str, python: Path, module: str, environment: Mapping[str, str], log: Path):
        self.name, self.log = name, log
        with log.open("w", encoding="utf-8") as stream:
            self.process = subprocess.Popen(
                [str(python), "-m", module],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                encoding="utf-8",
            )
        try:
            told = self._read()
            self.versions: dict[str, str] = told["versions"]
            self.engine: str = told.get("engine", "")  # of its matrix products
            self._stop()
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One turn. Beside the worker's answer, `wall`, its seconds from outside, and `foreign`, the processor seconds
        that others used meanwhile."""
        assert self.process.stdin is not None
        self.process.send_signal(signal.SIGCONT)
        begun, busy, own = time.perf_counter(), busy_seconds(), process_seconds(self.process.pid)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._read()
        answer["wall"] = time.perf_counter() - begun
        if busy is not None and own is not None:
            spent = process_seconds(self.process.pid) or own
            answer["foreign"] = max(0.0, (busy_seconds() or busy) - busy - (spent - own))
        self._stop()
        return answer

    def close(self) -> None:
        """End the process; it leaves by itself when its input closes."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        # The signal takes effect later; the next turn must not begin before.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            last = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-15:]
            told = "\n  ".join(last or ["it printed nothing"])
            raise RuntimeError(f"{self.name} ended with code {self.process.returncode}:\n  {told}")
        answer: dict[str, Any] = json.loads(line)
        return answer
