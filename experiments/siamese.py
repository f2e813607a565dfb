"""Whether bertie's siamese encoders are as good as those of the `sentence-transformers` trainer, and how much sooner:
same rows, epochs, batches and rate. Scored pairs from real weights; SimCSE, without labels, from our own MINI, which is
also whitened instead.

The last model of a run counts on both sides: nothing is chosen on held-out rows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from bertie.train.folder.history import read_history
from experiments import against_trainer
from experiments.cell import AGAIN, PEERS, PYTHON, Cell, Result, bertie
from experiments.differences import difference, told
from experiments.experiment import Experiment, Rows, Setting
from experiments.pretraining import ENGLISH, corpus
from experiments.store import ROOT
from experiments.task_cells import Exercise, Start, minilm, read_scores, rows_of, score

OURS, PEER, BEFORE, WHITENED = "bertie", "sentence-transformers", "not trained", "whitened"
SEEDS = (0, 1, 2)
MODEL_SEED = 1  # of the pre-trained model
SPEED = "examples_per_second"
PEER_FILE = "experiments/peers/siamese_trainer.py"


@dataclass(frozen=True)
class Study:
    """Rows, and how they are learned."""

    exercise: Exercise
    batch: int
    rate: float


SCORED = Study(Exercise("stsb", "STS-B", "similarity", "cosine", 5749, 1, 2.0), 32, 5e-5)
UNLABELLED = Study(Exercise("sentences", "SimCSE", "similarity", "cosine", 10_000, 1, 2.0, length=64), 64, 1e-4)
STUDIES = (SCORED, UNLABELLED)


def cells(setting: Setting) -> Sequence[Cell]:
    minutes = setting.minutes_or(against_trainer.MINUTES)
    mini = against_trainer.own_cell(corpus(setting, ENGLISH), minutes, MODEL_SEED)
    starts = {SCORED: Start(minilm()), UNLABELLED: Start(mini, "/run/model")}
    found = []
    for study, start in starts.items():
        exercise = study.exercise.shortened(setting)
        rows = rows_of(setting, exercise)
        found.append(bare_cell(BEFORE, exercise, rows, start))
        for seed in setting.seeds_or(*SEEDS):
            found.append(own_cell(study, exercise, rows, start, seed))
            found.append(peer_cell(study, exercise, rows, start, seed))
        if study is UNLABELLED:
            found.append(bare_cell(WHITENED, exercise, rows, start, whitens=True))
    return found


def own_cell(study: Study, exercise: Exercise, rows: Cell, start: Start, seed: int) -> Cell:
    model = "{folder}/run/model"
    files = ("--base", start.folder, "--train", "{rows}/train.jsonl", "--out", "{folder}/run")
    return Cell(
        OURS,
        [
            bertie("finetune", exercise.task, "--siamese", *files, *learning(study, exercise, seed)),
            bertie("predict", model, "--input", "{rows}/test.jsonl", "--output", "{folder}/answers.jsonl", AGAIN),
            score(exercise, "{folder}/answers.jsonl", ("--model", model)),
        ],
        partial(read_own, exercise=exercise),
        seed=seed,
        needs={"base": start.cell, "rows": rows},
        minutes=exercise.minutes,
        part=exercise.title,
    )


def peer_cell(study: Study, exercise: Exercise, rows: Cell, start: Start, seed: int) -> Cell:
    train = (PEERS, "-m", "experiments.peers.siamese_trainer", "--rows", "{rows}", "--base", start.folder)
    command = (*train, *map(str, learning(study, exercise, seed)), "--out", "{folder}")
    return Cell(
        PEER,
        [command, score(exercise, "{folder}/answers.jsonl")],
        partial(read_peer, exercise=exercise),
        seed=seed,
        needs={"base": start.cell, "rows": rows},
        inputs={"siamese_trainer": ROOT / PEER_FILE},
        minutes=3 * exercise.minutes,
        resumes=False,
        part=exercise.title,
    )


def learning(study: Study, exercise: Exercise, seed: int) -> tuple[object, ...]:
    """What both sides are told."""
    amount = ("--epochs", exercise.epochs, "--batch", study.batch, "--max-length", exercise.length)
    return (*amount, "--lr", study.rate, "--seed", seed)


def bare_cell(name: str, exercise: Exercise, rows: Cell, start: Start, *, whitens: bool = False) -> Cell:
    """The model as it is, or with one layer that the same texts tell."""
    model = "{folder}/white" if whitens else start.folder
    answers = (PYTHON, "-m", "experiments.cosines", model, "--rows", "{rows}/test.jsonl")
    commands = [(*answers, "--out", "{folder}/answers.jsonl"), score(exercise, "{folder}/answers.jsonl")]
    if whitens:
        commands.insert(0, bertie("whiten", start.folder, "{rows}/train.jsonl", "--out", model))
    needs = {"base": start.cell, "rows": rows}
    return Cell(name, commands, read_scores, needs=needs, minutes=0.2, part=exercise.title)


def read_own(folder: Path, exercise: Exercise) -> Result:
    """Seconds are those of steps, which read and tokenise their rows, as the peer's do."""
    history = read_history(folder / "run")
    assert history.tokens_per_second is not None
    seconds = history.last["tokens"] / history.tokens_per_second
    return with_speed(folder, exercise, exercise.epochs * exercise.num_rows / seconds)


def read_peer(folder: Path, exercise: Exercise) -> Result:
    return with_speed(folder, exercise, json.loads((folder / "speed.json").read_text("utf-8"))[SPEED])


def with_speed(folder: Path, exercise: Exercise, speed: float) -> Result:
    result = read_scores(folder)
    result["figures"][f"{exercise.set}_{SPEED}"] = speed
    return result


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for exercise in (study.exercise for study in STUDIES):
        found = difference(rows, OURS, PEER, exercise.set, exercise.measure)
        if found is None:
            continue
        speeds = [
            fmean(
                result["figures"][f"{exercise.set}_{SPEED}"]
                for result in rows[name]
                if exercise.set in result["examples"]
            )
            for name in (OURS, PEER)
        ]
        sentences.append(
            f"{exercise.title}: bertie beside {PEER} {told(found)}, and {speeds[0] / speeds[1]:.1f} times as fast."
        )
    return sentences


EXPERIMENT = Experiment(
    about="siamese encoders by bertie and by sentence-transformers: STS-B from MiniLM, SimCSE from our own MINI",
    cells=cells,
    columns=[
        column
        for study in STUDIES
        for column in (
            study.exercise.column("Spearman", "spearman"),
            study.exercise.column("examples/s", SPEED, ",.0f"),
        )
    ],
    conclude=conclude,
)
