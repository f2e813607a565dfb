"""Speed of fine-tuning on real labelled rows: bertie beside the `transformers` Trainer, interleaved in one run.

Run as `.venv/bin/python benchmarks/finetune.py`. README.md in this folder says what is measured and how to read it.
"""

import argparse
import contextlib
import json
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

from benchmarks.command import (
    SHARED,
    Place,
    engines_of,
    new_parser,
    positive,
    read_options,
    run_alone,
    started,
    with_same_engine,
)
from benchmarks.contenders.minilm import FOLDER, NAME, PRODUCTS, WIDTH
from benchmarks.environment import peers_python
from benchmarks.figures import OURS
from benchmarks.labelled_sets import SETS, Row, drawn, write_rows
from benchmarks.learning_turns import PEAK, Wish, compare, foreign_load, recorded
from benchmarks.learning_turns import describe as describe_rows
from benchmarks.record import keep, new_entry
from bertie.machine import cpu_name, num_cores
from bertie.tasks.label_sets import sorted_labels

PEER = "transformers Trainer"
BATCH = 32  # examples of a step
INITIAL_STD = 0.02  # of the head


@dataclass(frozen=True)
class Exercise:
    """A line of the table: a set, its task, how many steps a turn has, and what is expected."""

    set: str
    task: str
    length: int
    steps: int
    must: float
    goal: float | None = None

    @property
    def num_rows(self) -> int:
        """One step more than a turn takes, for the warm-up."""
        return BATCH * (self.steps + 1)

    @property
    def wish(self) -> Wish:
        return Wish(PEER, self.must, self.goal)


EXERCISES = {
    "SST-2": Exercise("sst2", "classify", 128, 20, 3.5, 5.0),
    "CoNLL-2003": Exercise("conll", "tag", 256, 16, 3.5, 5.0),
    "SQuAD": Exercise("squad", "answer", 384, 6, 5.0),
}


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=5)
    parser.add_argument("--only", nargs="+", choices=EXERCISES, default=list(EXERCISES), help="sets (default: all)")
    parser.add_argument("--steps", type=positive, help="of every turn, instead of each set's own: for a trial")
    parser.add_argument("--threads", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder with sst2, conll2003 and squad")
    return read_options(parser, words, trial=("only", "steps"))


def run(options: argparse.Namespace, warning: str | None) -> int:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bertie-benchmark-")))
        exercises = {
            name: replace(EXERCISES[name], steps=options.steps or EXERCISES[name].steps) for name in options.only
        }
        requests = {name: request_of(exercise, options.data, folder) for name, exercise in exercises.items()}
        own, peers = Path(sys.executable), peers_python(options.peers_python)
        places = with_same_engine(PEER, {PEER: Place("finetune_trainer", peers), OURS: Place("finetune_bertie", own)})
        workers = stack.enter_context(started({**places, PEAK: Place("gemm", own)}, options.threads, folder))
        results = {
            name: compare(name, exercises[name].wish, workers, request, PRODUCTS, exercises[name].steps, options.rounds)
            for name, request in requests.items()
        }
        versions = {name: worker.versions for name, worker in workers.items()}
        engines = engines_of(workers)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_name(), "cores": num_cores(), "threads": options.threads, "torch": torch.__version__},
        "model": NAME,
        "rounds": options.rounds,
        "versions": versions,
        "engines": engines,
        "warning": warning,
        "rows": results,
    }
    print(describe(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    keep(options, new_entry("finetune.py", report, recorded(results, PEER), foreign_load(results), engines))
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


def describe(report: dict[str, Any]) -> str:
    machine = report["machine"]
    head = (
        f"fine-tuning {report['model']}, float32, batches of {BATCH}, {machine['threads']} threads, {machine['cpu']}, "
        f"{report['rounds']} rounds"
    )
    return "\n".join([head, *describe_rows(report["rows"], PEER, report["engines"])])


if __name__ == "__main__":
    sys.exit(main())
