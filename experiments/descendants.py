"""What the descendants' ideas are worth in equal time: the same text, vocabulary and size, by the clock.

Losses are each objective's own and cannot be compared across rows; what can be is the quality after fine-tuning.
"""

from collections.abc import Sequence
from dataclasses import replace

from experiments.cell import Cell
from experiments.experiment import Column, Curves, Experiment, Setting
from experiments.pretraining import ENGLISH, corpus, pretrain, read_run
from experiments.task_cells import CONLL, SMALL_RATE, SST2, Start, own_cell, rows_of

MINUTES, STEPS_PER_MINUTE = 3, 300
RECIPES = ("bert", "bert-wwm", "spanbert", "roberta", "albert", "electra")
EXERCISES = (replace(SST2, minutes=0.4), replace(CONLL, minutes=0.4, length=128))


def cells(setting: Setting) -> Sequence[Cell]:
    """A row's cells: the run, and what becomes of its model on each set."""
    prepared = corpus(setting, ENGLISH)
    exercises = [exercise.shortened(setting, MINUTES) for exercise in EXERCISES]
    sets = [(exercise, rows_of(setting, exercise)) for exercise in exercises]
    found = []
    for name in RECIPES:
        for seed in setting.seeds_or(1):
            learned = pretrained(setting, name, prepared, seed)
            start = Start(learned, "/run", SMALL_RATE)
            found += [learned, *(own_cell(name, exercise, rows, start, seed) for exercise, rows in sets)]
    return found


def pretrained(setting: Setting, name: str, prepared: Cell, seed: int) -> Cell:
    minutes = setting.minutes_or(MINUTES)
    return Cell(
        name,
        [pretrain("tiny", minutes, seed, STEPS_PER_MINUTE, recipe=name)],
        lambda folder: read_run(folder / "run"),
        seed=seed,
        needs={"corpus": prepared},
        minutes=minutes + 0.3,
    )


EXPERIMENT = Experiment(
    about="TINY on English Wikipedia in equal time, one recipe of the family a row, then fine-tuned",
    cells=cells,
    columns=(
        EXERCISES[0].column("accuracy", "accuracy"),
        EXERCISES[1].column("F1", "f1"),
        Column("held-out MLM loss, own masks", "masked_lm"),
        Column("accuracy, own masks", "masked_lm_accuracy", ".1%"),
        Column("NSP accuracy", "next_sentence_accuracy", ".1%"),
        Column("SOP accuracy", "sentence_order_accuracy", ".1%"),
        Column("replaced tokens found", "replaced_tokens_found", ".1%"),
        Column("steps", "steps", ",.0f"),
        Column("tokens/s", "tokens_per_second", ",.0f"),
    ),
    charts=(Curves("masked_lm", "held-out MLM loss, own masks", "minutes"),),
)
