"""What the parts of the objective are worth: the same small model, each time with one of them changed."""

import json
from collections.abc import Sequence
from pathlib import Path

from experiments.cell import PYTHON, Cell, Result
from experiments.experiment import Column, Curves, Experiment, Setting
from experiments.pretraining import ENGLISH, corpus, pretrain, read_run

MINUTES, STEPS_PER_MINUTE = 4, 400
CONFIGURATIONS = {
    "token masks, NSP": ("--mask", "token", "--sentences", "nsp"),
    "no NSP": ("--mask", "token", "--sentences", "none"),
    "whole-word masks": ("--mask", "whole-word", "--sentences", "nsp"),
    "span masks": ("--mask", "span", "--sentences", "nsp"),
}


def cells(setting: Setting) -> Sequence[Cell]:
    minutes, prepared = setting.minutes_or(MINUTES), corpus(setting, ENGLISH)
    judge = (PYTHON, "-m", "experiments.same_rows", "{folder}/run", "{corpus}", "--out", "{folder}/same_rows.json")
    return [
        Cell(
            name,
            [pretrain("tiny", minutes, seed, STEPS_PER_MINUTE, flags, by_clock=False), judge],
            read,
            seed=seed,
            needs={"corpus": prepared},
            minutes=minutes + 0.3,
        )
        for name, flags in CONFIGURATIONS.items()
        for seed in setting.seeds_or(1)
    ]


def read(folder: Path) -> Result:
    found = read_run(folder / "run")
    return {**found, "figures": {**found["figures"], **json.loads((folder / "same_rows.json").read_text("utf-8"))}}


EXPERIMENT = Experiment(
    about="TINY on English Wikipedia, 1,600 steps each, one part of the objective changed",
    cells=cells,
    columns=(
        Column("held-out MLM loss, own masks", "masked_lm"),
        Column("accuracy, own masks", "masked_lm_accuracy", ".1%"),
        Column("same rows, token masks: loss", "token_loss"),
        Column("accuracy", "token_accuracy", ".1%"),
        Column("same rows, word masks: loss", "word_loss"),
        Column("accuracy", "word_accuracy", ".1%"),
        Column("NSP accuracy", "next_sentence_accuracy", ".1%"),
        Column("steps", "steps", ",.0f"),
    ),
    charts=(Curves("masked_lm", "held-out MLM loss, own masks", "minutes"),),
)
