"""Speed of fine-tuning on real labelled rows: bertie beside the `transformers` Trainer, interleaved in one run.

Run as `.venv/bin/python benchmarks/finetune.py`. README.md in this folder says what is measured and how to read it.
"""

import argparse
import contextlib
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch

from benchmarks.command import SHARED, new_parser, positive, run_alone, say, started
from benchmarks.contenders.minilm import FOLDER, NAME, WIDTH
from benchmarks.environment import peers_python
from benchmarks.figures import OURS, Bar, Speed, paired_ratio
from benchmarks.labelled_sets import SETS, Row, drawn, write_rows
from benchmarks.worker import Worker
from bertie.errors import UserError
from bertie.machine import cpu_name, num_cores
from bertie.tasks.classification import sorted_labels

PEER = "transformers Trainer"
BATCH = 32  # examples of a step
CLOSE = 1e-4  # both must give the same loss for the same weights and rows, up to this share of it
INITIAL_STD = 0.02  # of the head

Turns = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Exercise:
    """A line of the table: a set, its task, how many steps a turn has, and what is expected."""

    set: str
    task: str
    length: int
    steps: int
    must: float
    goal: float

    @property
    def num_rows(self) -> int:
        """One step more than a turn takes, for the warm-up."""
        return BATCH * (self.steps + 1)


EXERCISES = {
    "SST-2": Exercise("sst2", "classify", 128, 20, 2.5, 3.0),
    "CoNLL-2003": Exercise("conll", "tag", 256, 16, 2.0, 2.5),
    "SQuAD": Exercise("squad", "answer", 384, 6, 2.0, 2.5),
}


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=5)
    parser.add_argument("--only", nargs="+", choices=EXERCISES, default=list(EXERCISES), help="sets (default: all)")
    parser.add_argument("--steps", type=positive, help="of every turn, instead of each set's own: for a trial")
    parser.add_argument("--threads", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder with sst2, conll2003 and squad")
    return parser.parse_args(words)


def run(options: argparse.Namespace, warning: str | None) -> int:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bertie-benchmark-")))
        exercises = {
            name: replace(EXERCISES[name], steps=options.steps or EXERCISES[name].steps) for name in options.only
        }
        requests = {name: request_of(exercise, options.data, folder) for name, exercise in exercises.items()}
        peers = peers_python(options.peers_python)
        modules = {PEER: ("finetune_trainer", peers), OURS: ("finetune_bertie", Path(sys.executable))}
        workers = stack.enter_context(started(modules, options.threads, folder))
        results = {
            name: compare(name, workers, request, exercises[name].steps, options.rounds)
            for name, request in requests.items()
        }
        versions = {name: worker.versions for name, worker in workers.items()}
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_name(), "cores": num_cores(), "threads": options.threads, "torch": torch.__version__},
        "model": NAME,
        "rounds": options.rounds,
        "versions": versions,
        "warning": warning,
        "rows": results,
    }
    print(describe(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    broken = [row for row in results.values() if not row["bar"]["holds"]]
    return 1 if options.strict and broken else 0


def request_of(exercise: Exercise, data: Path, folder: Path) -> dict[str, Any]:
    """What both contenders are asked: rows in a file, and the weights of the new head."""
    wanted = SETS[exercise.set]
    rows = drawn(wanted.read(data / wanted.files["train"]))[: exercise.num_rows]
    file, head = folder / f"{exercise.set}.jsonl", folder / f"{exercise.set}.npz"
    write_rows(file, rows)
    labels = labels_of(exercise.task, rows)
    write_head(head, len(labels) or 2)  # without labels: logits of start and end
    return {
        "task": exercise.task,
        "model": str(FOLDER),
        "head": str(head),
        "rows": str(file),
        "labels": labels,
        "length": exercise.length,
        "batch": BATCH,
    }


def labels_of(task: str, rows: Sequence[Row]) -> list[str]:
    if task == "tag":
        return sorted({tag for row in rows for tag in row["tags"]})
    return list(sorted_labels(row["label"] for row in rows)) if task == "classify" else []


def write_head(path: Path, num_outputs: int, width: int = WIDTH) -> None:
    weight = np.random.default_rng(0).normal(0, INITIAL_STD, (num_outputs, width))
    np.savez(path, weight=weight.astype(np.float32), bias=np.zeros(num_outputs, np.float32))


def compare(
    name: str, workers: dict[str, Worker], request: dict[str, Any], num_steps: int, num_rounds: int
) -> dict[str, Any]:
    checks = {other: workers[other].ask({**request, "check": True}) for other in (PEER, OURS)}
    refuse_other_losses(name, checks)
    turns: Turns = {other: [] for other in workers}
    for number in range(num_rounds):
        for other in (PEER, OURS) if number % 2 else (OURS, PEER):
            turns[other].append(workers[other].ask({**request, "steps": num_steps}))
        told = ", ".join(f"{other} {speed_of(turns[other][-1]):,.1f}" for other in workers)
        say(f"{name}: round {number + 1}: {told} examples/s")
    return figures(name, turns, {other: check["loss"] for other, check in checks.items()})


def refuse_other_losses(name: str, checks: dict[str, dict[str, Any]]) -> None:
    """A wrong answer has no speed."""
    for what, near in (("tokens", 0.0), ("loss", CLOSE)):
        found = {other: check[what] for other, check in checks.items()}
        if not math.isclose(*found.values(), rel_tol=near):
            raise UserError(f"{name}: the same rows and weights give other {what}, so speeds mean nothing: {found}")


def speed_of(turn: dict[str, Any]) -> float:
    return float(turn["examples"] / turn["seconds"])


def figures(name: str, turns: Turns, losses: dict[str, float]) -> dict[str, Any]:
    exercise = EXERCISES[name]
    seconds = {other: [turn["seconds"] for turn in turns[other]] for other in turns}
    speeds = {other: Speed.of(turns[other][0]["examples"], seconds[other]) for other in turns}
    ratio = speeds[OURS].best / speeds[PEER].best
    bar = Bar(f"{name}: times the Trainer", ratio, exercise.must, exercise.goal)
    return {
        "speeds": {
            other: {"best": speed.best, "median": speed.middle, "spread": speed.spread}
            for other, speed in speeds.items()
        },
        "ratio": ratio,
        "paired_ratio": paired_ratio(seconds[OURS], seconds[PEER]),
        "losses": losses,
        "foreign": sum(turn.get("foreign", 0.0) for other in turns for turn in turns[other]),
        "bar": {"line": str(bar), "holds": bar.holds, "reached": bar.reached},
        "turns": turns,
    }


def describe(report: dict[str, Any]) -> str:
    machine = report["machine"]
    lines = [
        f"fine-tuning {report['model']}, float32, batches of {BATCH}, {machine['threads']} threads, {machine['cpu']}, "
        f"{report['rounds']} rounds",
        "",
        f"{'examples/s':<14}{'Trainer':>9}{'bertie':>9}{'times':>7}{'paired':>8}  {'spread':<10} the same loss",
    ]
    for name, row in report["rows"].items():
        peer, own = row["speeds"][PEER], row["speeds"][OURS]
        spread = f"{peer['spread']:.0%}, {own['spread']:.0%}"
        lines.append(
            f"{name:<14}{peer['best']:>9,.1f}{own['best']:>9,.1f}{row['ratio']:>7.2f}{row['paired_ratio']:>8.2f}"
            f"  {spread:<10} {row['losses'][OURS]:.6f}"
        )
    return "\n".join([*lines, "", *(row["bar"]["line"] for row in report["rows"].values())])


if __name__ == "__main__":
    sys.exit(main())
