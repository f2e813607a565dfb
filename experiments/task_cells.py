"""Cells of fine-tuning: a set of the folder `shared` and a model enter, the model's scores on the set leave."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bertie.train.folder.run_folder import SUMMARY, read_object
from experiments.cell import AGAIN, PEERS, PYTHON, Cell, Command, Result, bertie
from experiments.experiment import Column, Setting
from experiments.pretraining import nothing
from experiments.store import ROOT
from experiments.task_scores import MEASURES
from experiments.task_sets import SOURCES

BATCH, RATE = 32, 5e-5
SMALL_RATE = 3e-4  # of TINY and MINI; a lower one would be to the disadvantage of those that begin at random weights
LEAST_ROWS = 64  # of a trial
PEER_FILES = ("experiments/peers/finetune_trainer.py", "benchmarks/contenders/task_features.py")


@dataclass(frozen=True)
class Exercise:
    """A set, and how it is learned. `minutes` is about how long bertie takes with MiniLM."""

    set: str
    title: str
    task: str
    measure: str
    num_rows: int
    epochs: int
    minutes: float
    length: int = 128
    flags: tuple[str, ...] = ()
    num_test: int | None = None  # all
    own_batch: int = BATCH  # rows of bertie's steps; the Trainer counts the windows of long passages, BATCH of them
    has_dev: bool = False  # the best model on it is kept, and what is tuned is tuned there

    @property
    def skips(self) -> bool:
        """Whether rows are passed over that cannot be used; `bertie evaluate` then counts others than all."""
        return "--skip-bad" in self.flags

    def shortened(self, setting: Setting, usual: float | None = None) -> "Exercise":
        """For a trial: as many rows as the minutes are of the usual ones."""
        if setting.minutes is None:
            return self
        share = min(1.0, setting.minutes / (usual or self.minutes))
        num_rows, num_test = (max(LEAST_ROWS, round(share * count)) for count in (self.num_rows, self.num_test or 1000))
        return replace(self, num_rows=num_rows, num_test=num_test, minutes=self.minutes * share)

    def column(self, heading: str, figure: str, form: str = ".1%") -> Column:
        return Column(f"{self.title} {heading}", f"{self.set}_{figure}", form)


SST2 = Exercise("sst2", "SST-2", "classify", "classify", 5000, 3, 1.5)
CONLL = Exercise("conll", "CoNLL-2003", "tag", "tag", 3000, 3, 1.5, length=256)


def minilm() -> Cell:
    copy = (PYTHON, "-m", "experiments.minilm", "--out", "{folder}")
    return Cell("all-MiniLM-L6-v2", [copy], nothing, minutes=0.1, resumes=False)


def rows_of(setting: Setting, exercise: Exercise) -> Cell:
    """train.jsonl and test.jsonl, and dev.jsonl where the set has it."""
    files = SOURCES[exercise.set].files
    given = [word for part in files for word in ("--file", f"{part}={{{part}}}")]
    test = [] if exercise.num_test is None else ["--test-rows", str(exercise.num_test)]
    write = (PYTHON, "-m", "experiments.task_sets", exercise.set, *given, "--rows", str(exercise.num_rows), *test)
    inputs = {part: setting.data / file for part, file in files.items()}
    name = f"rows of {exercise.title}"
    return Cell(name, [(*write, "--out", "{folder}")], nothing, inputs=inputs, minutes=0.2, resumes=False)


@dataclass(frozen=True)
class Start:
    """The model that is fine-tuned: a cell, and where in its folder the model is."""

    cell: Cell
    inside: str = ""
    rate: float | Cell = RATE  # a cell chooses it on dev: its folder has best.toml
    how: tuple[str, ...] = ("--base",)  # what the folder is for `finetune`

    @property
    def folder(self) -> str:
        return "{base}" + self.inside


def own_cell(name: str, exercise: Exercise, rows: Cell, start: Start, seed: int) -> Cell:
    """`bertie finetune`, then its answers to the test."""
    model = "{folder}/run/model"
    compared = () if exercise.skips else ("--model", model)
    return Cell(
        name,
        [
            finetune(exercise, start, seed),
            bertie("predict", model, "--input", "{rows}/test.jsonl", "--output", "{folder}/answers.jsonl", AGAIN),
            score(exercise, "{folder}/answers.jsonl", compared),
        ],
        partial(read_own, exercise=exercise),
        seed=seed,
        needs={"base": start.cell, "rows": rows, **({"rate": start.rate} if isinstance(start.rate, Cell) else {})},
        minutes=exercise.minutes,
        part=exercise.title,
    )


def rate_cell(name: str, exercise: Exercise, rows: Cell, start: Start, rates: Sequence[float], seed: int) -> Cell:
    """Tries learning rates with one seed, and keeps the best on dev as best.toml."""
    tries = [finetune(exercise, replace(start, rate=rate), seed, f"{{folder}}/{rate:g}") for rate in rates]
    folders = [f"{{folder}}/{rate:g}" for rate in rates]
    figure = ("--figure", MEASURES[exercise.measure].main)
    choose = (PYTHON, "-m", "experiments.best_rate", *folders, *figure, "--out", "{folder}/best.toml")
    return Cell(
        f"rate of {name}",
        [*tries, choose],
        nothing,
        seed=seed,
        needs={"base": start.cell, "rows": rows},
        minutes=len(rates) * exercise.minutes,
        part=exercise.title,
    )


def finetune(exercise: Exercise, start: Start, seed: int, out: str = "{folder}/run") -> Command:
    dev = ["--dev", "{rows}/dev.jsonl"] if exercise.has_dev else []
    rate = ["--config", "{rate}/best.toml"] if isinstance(start.rate, Cell) else ["--lr", start.rate]
    steps = ["--epochs", exercise.epochs, "--batch", exercise.own_batch, *rate]
    files = [*start.how, start.folder, "--train", "{rows}/train.jsonl", *dev]
    wishes = ["--max-length", exercise.length, "--seed", seed, *exercise.flags]
    return bertie("finetune", exercise.task, *files, *steps, *wishes, "--out", out)


def peer_cell(name: str, exercise: Exercise, rows: Cell, start: Start, seed: int) -> Cell:
    """The same with the `transformers` Trainer."""
    task = {"pair": "classify"}.get(exercise.task, exercise.task)
    train = (PEERS, "-m", "experiments.peers.finetune_trainer", task, "--rows", "{rows}", "--base", start.folder)
    assert not isinstance(start.rate, Cell)
    learning = ("--epochs", exercise.epochs, "--batch", BATCH, "--lr", start.rate, "--max-length", exercise.length)
    command = (*train, *map(str, learning), "--seed", str(seed), "--out", "{folder}/answers.jsonl")
    return Cell(
        name,
        [command, score(exercise, "{folder}/answers.jsonl")],
        read_scores,
        seed=seed,
        needs={"base": start.cell, "rows": rows},
        inputs={Path(file).stem: ROOT / file for file in PEER_FILES},
        minutes=3 * exercise.minutes,
        resumes=False,
        part=exercise.title,
    )


def baseline_cell(name: str, exercise: Exercise, rows: Cell, seed: int | None = None) -> Cell:
    """The simple rule that a made set brings with it."""
    command = score(exercise, "{rows}/baseline.jsonl")
    return Cell(name, [command], read_scores, seed=seed, needs={"rows": rows}, minutes=0.1, part=exercise.title)


def score(exercise: Exercise, answers: str, compared: Sequence[str] = (), rows: str = "{rows}/test.jsonl") -> Command:
    what = ("experiments.task_scores", exercise.set, "--measure", exercise.measure)
    return (PYTHON, "-m", *what, "--rows", rows, "--answers", answers, *compared, "--out", "{folder}/scores.json")


def read_own(folder: Path, exercise: Exercise) -> Result:
    """With the figure of the rows that the model was chosen on, where there were such."""
    result, main = read_scores(folder), MEASURES[exercise.measure].main
    if exercise.has_dev:
        chosen = read_object(folder / "run" / SUMMARY)["evaluation"][main]
        result["figures"][f"{exercise.set}_dev_{main}"] = chosen
    return result


def read_scores(folder: Path) -> Result:
    result: Result = json.loads((folder / "scores.json").read_text("utf-8"))
    return result
