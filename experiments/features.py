"""Frozen features beside fine-tuning: CoNLL-2003 with BiLSTMs over one choice of layers after another.

Devlin et al., 2019, table 7. The encoder runs once over all rows, so that an epoch costs what its top costs.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

from bertie.train.folder.history import read_history
from experiments.cell import Cell, Result
from experiments.differences import difference, told
from experiments.experiment import Column, Experiment, Rows, Setting
from experiments.task_cells import CONLL, Exercise, Start, minilm, own_cell, read_own, rows_of

SEEDS = (0, 1)
TUNED, LINEAR = "fine-tuned", "last, linear"
# So that both have learned in a few minutes: at the usual 5e-5 fine-tuning would be far from done after 250 steps.
RATE, TOP_RATE = 2e-4, 1e-3
TUNING = replace(CONLL, num_rows=2000, num_test=1000, epochs=4, has_dev=True, minutes=4)
FROZEN = replace(TUNING, epochs=5)
# By row of the table: features and top.
TOPS = {
    "last, BiLSTM": ("last", "lstm"),
    "second-last, BiLSTM": ("second-last", "lstm"),
    "sum4, BiLSTM": ("sum4", "lstm"),
    "concat4, BiLSTM": ("concat4", "lstm"),
    "weighted, BiLSTM": ("weighted", "lstm"),
    LINEAR: ("last", "linear"),
}
EPOCH, ONCE = "epoch_seconds", "once_seconds"
CHEAP = 1 / 20  # of an epoch of fine-tuning
SWEEP = ("find", "{folder}/features", "-name", "*.f32", "-delete")  # half a gigabyte of each cell


def cells(setting: Setting) -> Sequence[Cell]:
    tuning, frozen = (exercise.shortened(setting) for exercise in (TUNING, FROZEN))
    rows, found = rows_of(setting, tuning), []
    for seed in setting.seeds_or(*SEEDS):
        found.append(timed(own_cell(TUNED, tuning, rows, Start(minilm(), rate=RATE), seed), tuning))
        for name, (features, top) in TOPS.items():
            exercise = replace(frozen, flags=("--features", features, "--top", top))
            cell = own_cell(name, exercise, rows, Start(minilm(), rate=TOP_RATE), seed)
            found.append(timed(replace(cell, commands=[*cell.commands, SWEEP]), exercise))
    return found


def timed(cell: Cell, exercise: Exercise) -> Cell:
    """The cell with the cost of an epoch."""
    return replace(cell, read=partial(read_timed, exercise=exercise))


def read_timed(folder: Path, exercise: Exercise) -> Result:
    """Seconds of an epoch's steps, and of the encoder's one run over all rows, where it ran but once."""
    result, history = read_own(folder, exercise), read_history(folder / "run")
    assert history.tokens_per_second is not None
    result["figures"][EPOCH] = history.last["tokens"] / history.tokens_per_second / exercise.epochs
    if stored := list((folder / "features").glob("*.json")):
        result["figures"][ONCE] = sum(json.loads(path.read_text("utf-8"))["seconds"] for path in stored)
    return result


def conclude(rows: Rows) -> list[str]:
    """The features are chosen on dev, and told on the test."""
    figures = {
        name: {figure: fmean(one["figures"][figure] for one in results) for figure in ("conll_dev_f1", EPOCH)}
        for name, results in rows.items()
        if results
    }
    sentences = []
    if TUNED in figures and LINEAR in figures:
        share = figures[LINEAR][EPOCH] / figures[TUNED][EPOCH]
        verdict = "at most" if share <= CHEAP else "MORE THAN"
        times = f"{figures[LINEAR][EPOCH]:.2f} s against {figures[TUNED][EPOCH]:.1f} s, 1/{1 / share:.0f}"
        sentences.append(f"Under a linear top an epoch costs {verdict} 1/20 of one of fine-tuning: {times}.")
    if frozen := [name for name in figures if name in TOPS]:
        best = max(frozen, key=lambda name: figures[name]["conll_dev_f1"])
        if (found := difference(rows, best, TUNED, TUNING.set, TUNING.measure)) is not None:
            sentences.append(f"The features that are best on dev, {best}, against fine-tuning: {told(found)} of F1.")
    return sentences


EXPERIMENT = Experiment(
    about="all-MiniLM-L6-v2 on CoNLL-2003 (2,000 sentences): fine-tuned, and frozen under a BiLSTM or a linear top",
    cells=cells,
    columns=(
        TUNING.column("dev F1", "dev_f1"),
        TUNING.column("test F1", "f1"),
        Column("seconds an epoch", EPOCH, ".2f"),
        Column("seconds of the encoder, once", ONCE, ".1f"),
    ),
    conclude=conclude,
)
