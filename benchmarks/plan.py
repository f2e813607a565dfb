"""Does `bertie plan` tell the truth? Three configurations are planned, then run; time and memory stand side by side.

Run as `.venv/bin/python benchmarks/plan.py` on a machine that does nothing else. The exit code is 1 where a plan is
off by more than a quarter.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from benchmarks.command import SHARED, add_record
from benchmarks.load import load_warning
from benchmarks.lock import only_one
from benchmarks.record import Figure, keep, new_entry
from benchmarks.texts import write_articles

COMMAND = (sys.executable, "-m", "bertie.cli.app")
NUM_DOCUMENTS = 600
LARGEST_ERROR = 0.25
POLL = 0.05  # seconds

CONFIGURATIONS = {
    "tiny": "--size tiny --steps 300 --save-every 100",
    "mini": "--size mini --steps 80 --batch-tokens 8192 --save-every 40",
    "tiny, 128 then 512": "--size tiny --tokens 600k --curriculum 128:0.8,512:0.2 --save-every 60 --eval-rows 64",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    warning = load_warning(os.getloadavg()[0])
    if warning:
        print(warning)
    errors: dict[str, float] = {}
    with only_one(), tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or make_corpus(options.data, Path(folder))
        print(f"{'':<20} {'time':>21}  {'':>7} {'memory':>23}")
        for number, (name, words) in enumerate(CONFIGURATIONS.items()):
            given = ["--recipe", "bert", *words.split(), "--corpus", str(corpus), "--seed", "1"]
            plan = planned(given)
            seconds, memory = measured([*given, "--out", str(Path(folder) / f"run-{number}")])
            of_time, of_memory = plan["total_seconds"] / seconds, plan["memory"] / memory
            errors |= {f"{name}: error of time": abs(of_time - 1), f"{name}: error of memory": abs(of_memory - 1)}
            told = f"{plan['total_seconds']:7.1f} s for {seconds:7.1f} s  ({of_time:.2f})"
            print(f"{name:<20} {told} {plan['memory'] / 1e6:6.0f} MB for {memory / 1e6:6.0f} MB ({of_memory:.2f})")
    worst = max(errors.values())
    print(f"worst error {worst:.0%}, allowed {LARGEST_ERROR:.0%}")
    keep(options, new_entry("plan.py", report(), recorded(errors, warning), 0.0))
    return int(worst > LARGEST_ERROR)


def report() -> dict[str, Any]:
    versions = {name: version(name) for name in ("bertie", "torch")}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    machine = {"threads": torch.get_num_threads()}
    return {"date": date, "machine": machine, "rounds": 1, "versions": {"bertie": versions}}


def recorded(errors: Mapping[str, float], warning: str | None) -> list[Figure]:
    return [
        Figure(
            name,
            error,
            LARGEST_ERROR,
            verdict="holds" if error <= LARGEST_ERROR else "BROKEN",
            at_most=True,
            doubt="the machine was not quiet" if warning else "",
        )
        for name, error in errors.items()
    ]


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plans beside what the runs then took.")
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with real text")
    parser.add_argument("--corpus", type=Path, help="a corpus folder, instead of one made from --data")
    add_record(parser)
    return parser.parse_args(arguments, argparse.Namespace(trial=[]))


def make_corpus(data: Path, folder: Path) -> Path:
    articles = folder / "articles.jsonl"
    write_articles(data / "data", NUM_DOCUMENTS, articles)
    words = ["corpus", "build", str(articles), "--tokenizer", str(data / "vocab" / "bert-base-uncased")]
    subprocess.run([*COMMAND, *words, "--out", str(folder / "corpus")], check=True, capture_output=True)
    return folder / "corpus"


def planned(given: Sequence[str]) -> dict[str, float]:
    words = [*COMMAND, "plan", *given, "--no-smaller", "--json"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    plan: dict[str, float] = json.loads(done.stdout)
    return plan


def measured(given: Sequence[str]) -> tuple[float, int]:
    """Seconds and the peak of memory of a whole command."""
    begun = time.perf_counter()
    run = subprocess.Popen([*COMMAND, "pretrain", *given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while run.poll() is None:
        peak = max(peak, peak_of(run.pid))
        time.sleep(POLL)
    if run.returncode:
        raise SystemExit(f"the run failed: bertie pretrain {' '.join(given)}")
    return time.perf_counter() - begun, peak


def peak_of(process: int) -> int:
    """Bytes; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


if __name__ == "__main__":
    sys.exit(main())
