"""Commands that are started again and again and killed, and how far their runs got."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STEP = re.compile(rb'"event": "step", "step": (\d+),')


class Launcher:
    """Starts the command `bertie` again and again, each time in a new process that has torch loaded already: loading it
    would take longer than all else here."""

    SCRIPT = """
import json, os, sys
import torch._dynamo
import bertie.jobs.training.pretrain, bertie.jobs.finetuning.finetune
from bertie.cli.app import main
for line in sys.stdin:
    arguments, printed = json.loads(line)
    process = os.fork()
    if not process:
        os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(2, 1)
        main(arguments)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""

    def __init__(self, printed: Path):
        self.printed = printed  # what the last command printed
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", self.SCRIPT]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout

    def start(self, arguments: list[str]) -> int:
        """Its process number."""
        self.requests.write(json.dumps([arguments, str(self.printed)]) + "\n")
        self.requests.flush()
        return int(self.answers.readline())

    def wait(self) -> int:
        """Its exit code."""
        return int(self.answers.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def records(out: Path, event: str) -> list[dict[str, Any]]:
    log = out / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [record for record in found if record["event"] == event]


def last_step(out: Path) -> int:
    """Asked hundreds of times a second: only the end of the log is read."""
    log = out / "log.jsonl"
    if not log.exists():
        return 0
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        found = STEP.findall(file.read())
    return int(found[-1]) if found else 0


def newest_checkpoint(out: Path) -> int:
    """0 where there is none. What a kill left half written has another name."""
    return max((int(path.name.removeprefix("step-")) for path in out.glob("checkpoints/step-*")), default=0)


def wait_for(out: Path, mark: int) -> None:
    """Until a step was logged. A mark that was passed before means: at once."""
    limit = time.monotonic() + 120
    while last_step(out) < mark:
        assert time.monotonic() < limit, "it does not get on"
        time.sleep(0.002)
