"""One long run of bertie alone on each of two sets, beside what the `transformers` Trainer was measured to reach."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from experiments.cell import Cell
from experiments.experiment import Experiment, Rows, Setting
from experiments.task_cells import CONLL, SST2, Start, minilm, own_cell, rows_of

NAME, SEED = "bertie", 0
LONG_SST2 = replace(SST2, num_rows=20_000, epochs=1, minutes=2, has_dev=True)
LONG_CONLL = replace(CONLL, num_rows=14_041, minutes=6, has_dev=True)
COLUMNS = (
    LONG_SST2.column("accuracy", "accuracy"),
    LONG_SST2.column("dev accuracy", "dev_accuracy"),
    LONG_CONLL.column("F1", "f1"),
    LONG_CONLL.column("dev F1", "dev_f1"),
)
TRAINER = {"sst2_accuracy": 0.868, "sst2_dev_accuracy": 0.868, "conll_f1": 0.853}
ALLOWED = 0.005  # below it


def cells(setting: Setting) -> Sequence[Cell]:
    start, seeds = Start(minilm()), setting.seeds_or(SEED)
    exercises = [exercise.shortened(setting) for exercise in (LONG_SST2, LONG_CONLL)]
    return [own_cell(NAME, one, rows_of(setting, one), start, seed) for one in exercises for seed in seeds]


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for column in COLUMNS:
        found = [one["figures"][column.figure] for one in rows.get(NAME, ()) if column.figure in one["figures"]]
        bar = TRAINER.get(column.figure)
        if found and bar is not None:
            verdict = "not below" if fmean(found) >= bar - ALLOWED else "BELOW"
            sentences.append(f"{column.heading}: {fmean(found):.1%} is {verdict} the Trainer's {bar:.1%}.")
    return sentences


EXPERIMENT = Experiment(
    about="all-MiniLM-L6-v2 fine-tuned on SST-2 (20,000 rows, 1 epoch) and CoNLL-2003 (all of it, 3 epochs)",
    cells=cells,
    columns=COLUMNS,
    conclude=conclude,
)
