"""Speed of learning vectors that are compared: bertie beside `sentence-transformers`, interleaved in one run.

Run as `.venv/bin/python benchmarks/siamese.py`. README.md in this folder says what is measured and how to read it.
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

import torch

import bertie
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
from benchmarks.contenders.minilm import FOLDER, NAME, PRODUCTS, Products, products_of
from benchmarks.environment import peers_python
from benchmarks.figures import OURS
from benchmarks.labelled_sets import SETS, drawn, write_rows
from benchmarks.learning_turns import PEAK, Wish, compare, describe, foreign_load, recorded
from benchmarks.record import keep, new_entry
from bertie.machine import cpu_name, num_cores
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert

PEER = "sentence-transformers"
WISH = Wish(PEER, 3.0)


@dataclass(frozen=True)
class Exercise:
    """A line of the table. `small` is MINI, whose weights are random here: they do not change how fast it learns."""

    set: str
    task: str
    batch: int
    length: int
    steps: int
    small: bool = False

    @property
    def num_rows(self) -> int:
        """One step more than a turn takes, for the warm-up."""
        return self.batch * (self.steps + 1)

    @property
    def products(self) -> Products:
        """Inputs and outputs of the model's matrix products."""
        mini = SIZES["mini"]
        return products_of(mini.width, 4 * mini.width) if self.small else PRODUCTS


EXERCISES = {
    "STS-B": Exercise("stsb", "cosine", 32, 128, 20),
    "SimCSE, MINI": Exercise("sst2", "simcse", 64, 64, 20, small=True),
}


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=5)
    parser.add_argument("--only", nargs="+", choices=EXERCISES, default=list(EXERCISES), help="lines (default: all)")
    parser.add_argument("--steps", type=positive, help="of every turn: for a trial")
    parser.add_argument("--threads", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder with stsb and sst2")
    return read_options(parser, words, trial=("only", "steps"))


def run(options: argparse.Namespace, warning: str | None) -> int:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bertie-benchmark-")))
        chosen = {name: replace(EXERCISES[name], steps=options.steps or EXERCISES[name].steps) for name in options.only}
        requests = {name: request_of(exercise, options.data, folder) for name, exercise in chosen.items()}
        own, peers = Path(sys.executable), peers_python(options.peers_python)
        places = with_same_engine(PEER, {PEER: Place("siamese_trainer", peers), OURS: Place("finetune_bertie", own)})
        workers = stack.enter_context(started({**places, PEAK: Place("gemm", own)}, options.threads, folder))
        results = {
            name: compare(name, WISH, workers, request, chosen[name].products, chosen[name].steps, options.rounds)
            for name, request in requests.items()
        }
        versions = {name: worker.versions for name, worker in workers.items()}
        engines = engines_of(workers)
    machine = {"cpu": cpu_name(), "cores": num_cores(), "threads": options.threads, "torch": torch.__version__}
    print(
        f"vectors learned by {NAME} and MINI, float32, {options.threads} threads, {machine['cpu']}, "
        f"{options.rounds} rounds"
    )
    print("\n".join(describe(results, PEER, engines)))
    facts = {"machine": machine, "rounds": options.rounds, "versions": versions, "engines": engines, "warning": warning}
    report = {"date": datetime.now(UTC).isoformat(timespec="seconds"), **facts, "rows": results}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    keep(options, new_entry("siamese.py", report, recorded(results, PEER), foreign_load(results), engines))
    return 1 if options.strict and not all(row["bar"]["holds"] for row in results.values()) else 0


def request_of(exercise: Exercise, data: Path, folder: Path) -> dict[str, Any]:
    """What both contenders are asked."""
    wanted, file = SETS[exercise.set], folder / f"{exercise.set}.jsonl"
    write_rows(file, drawn(wanted.read(data / wanted.files["train"]))[: exercise.num_rows])
    return {
        "task": exercise.task,
        "model": str(new_mini(folder) if exercise.small else FOLDER),
        "rows": str(file),
        "labels": [],
        "length": exercise.length,
        "batch": exercise.batch,
    }


def new_mini(folder: Path) -> Path:
    tokenizer = bertie.load(FOLDER).tokenizer
    assert tokenizer is not None
    Pretrained(Model.new(bert(SIZES["mini"], tokenizer.size)), tokenizer).save(folder / "mini")
    return folder / "mini"


if __name__ == "__main__":
    sys.exit(main())
