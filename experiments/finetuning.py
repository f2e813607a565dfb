"""Whether bertie's models are as good as those of the `transformers` Trainer: same rows, epochs, batches and rate.

The last model of a run counts on both sides: nothing is chosen on held-out rows.
"""

from collections.abc import Sequence
from dataclasses import replace

from experiments import task_cells
from experiments.cell import Cell
from experiments.differences import difference, told
from experiments.experiment import Experiment, Rows, Setting
from experiments.task_cells import Exercise, Start, minilm, own_cell, peer_cell, rows_of

OURS, PEER = "bertie", "transformers Trainer"
SEEDS = (0, 1, 2, 3, 4)
EQUAL = ("--warmup", "0", "--weight-decay", "0")  # as the Trainer does where nothing is said
SST2 = replace(task_cells.SST2, epochs=1, minutes=0.8, flags=EQUAL)
CONLL = replace(task_cells.CONLL, epochs=2, minutes=1.5, flags=EQUAL)
STSB = Exercise("unit_stsb", "STS-B", "similarity", "similarity", 2000, 1, 1.0, flags=EQUAL)
MRPC = Exercise("mrpc", "MRPC", "pair", "classify", 3000, 2, 3.0, flags=EQUAL)
SQUAD = Exercise(  # 28 questions have 32 windows
    "squad", "SQuAD", "answer", "answer", 6000, 2, 30.0, length=256, flags=EQUAL, num_test=1000, own_batch=28
)
EXERCISES = {SQUAD: SEEDS[:1], SST2: SEEDS, CONLL: SEEDS, STSB: SEEDS, MRPC: SEEDS}


def cells(setting: Setting) -> Sequence[Cell]:
    start = Start(minilm())
    found = []
    for exercise, seeds in EXERCISES.items():
        shortened = exercise.shortened(setting)
        rows = rows_of(setting, shortened)
        for seed in setting.seeds_or(*seeds):
            found += [own_cell(OURS, shortened, rows, start, seed), peer_cell(PEER, shortened, rows, start, seed)]
    return found


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for exercise in EXERCISES:
        found = difference(rows, OURS, PEER, exercise.set, exercise.measure)
        if found is not None:
            verdict = "as good" if found.contains(0) else "better" if found.low > 0 else "WORSE"
            sentences.append(f"{exercise.title}: {OURS} is {verdict}: {told(found)}.")
    return sentences


EXPERIMENT = Experiment(
    about="all-MiniLM-L6-v2 fine-tuned by bertie and by the transformers Trainer, five seeds, SQuAD one",
    cells=cells,
    columns=(
        SST2.column("accuracy", "accuracy"),
        CONLL.column("F1", "f1"),
        STSB.column("Spearman", "spearman"),
        STSB.column("Pearson", "pearson"),
        MRPC.column("accuracy", "accuracy"),
        MRPC.column("F1", "f1"),
        SQUAD.column("F1", "f1"),
        SQUAD.column("exact match", "exact_match"),
    ),
    conclude=conclude,
)
