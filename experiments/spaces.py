"""Spaces put back into English text: a small model over characters that begins with random weights.

It learns from articles of Wikipedia and is measured on others, beside a rule that takes the longest known word.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from experiments.cell import AGAIN, Cell, bertie
from experiments.experiment import Column, Experiment, Rows, Setting
from experiments.task_cells import Exercise, baseline_cell, read_own, rows_of, score

OURS, RULE = "bertie", "longest known word"
SPACES = Exercise("spaces", "spaces", "spaces", "spaces", 8000, 1, 16.0, num_test=1000)
RECIPE, SIZE = "bilstm", "mini"
BATCH, RATE = 8, 3e-3
BAR = 0.95
SEEDS = (0,)


def cells(setting: Setting) -> Sequence[Cell]:
    exercise = SPACES.shortened(setting)
    rows = rows_of(setting, exercise)
    own = [own_cell(exercise, rows, seed) for seed in setting.seeds_or(*SEEDS)]
    return [*own, baseline_cell(RULE, exercise, rows)]


def own_cell(exercise: Exercise, rows: Cell, seed: int) -> Cell:
    model = "{folder}/run/model"
    begun = ["--recipe", RECIPE, "--size", SIZE, "--train", "{rows}/train.jsonl"]
    learning = ["--epochs", exercise.epochs, "--batch", BATCH, "--lr", RATE, "--max-length", exercise.length]
    return Cell(
        OURS,
        [
            bertie("finetune", exercise.task, *begun, *learning, "--seed", seed, "--out", "{folder}/run"),
            bertie("predict", model, "--input", "{rows}/test.jsonl", "--output", "{folder}/answers.jsonl", AGAIN),
            score(exercise, "{folder}/answers.jsonl", ("--model", model)),
        ],
        partial(read_own, exercise=exercise),
        seed=seed,
        needs={"rows": rows},
        minutes=exercise.minutes,
        part=exercise.title,
    )


def conclude(rows: Rows) -> list[str]:
    found = [one["figures"]["spaces_f1"] for one in rows.get(OURS, ()) if "spaces_f1" in one["figures"]]
    if not found:
        return []
    verdict = "not below" if fmean(found) >= BAR else "BELOW"
    return [f"F1 {fmean(found):.1%} is {verdict} {BAR:.0%}."]


EXPERIMENT = Experiment(
    about=f"spaces put back into English articles, {RECIPE} {SIZE} over characters from random weights",
    cells=cells,
    columns=(
        Column("F1", "spaces_f1", ".2%"),
        Column("precision", "spaces_precision", ".2%"),
        Column("recall", "spaces_recall", ".2%"),
    ),
    conclude=conclude,
)
