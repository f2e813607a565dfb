"""A Chinese model with whole-word masks: words come from the segmenter, tokens are characters."""

from collections.abc import Sequence

from experiments.cell import Cell
from experiments.experiment import Column, Curves, Experiment, Setting
from experiments.pretraining import CHINESE, corpus, pretrain, read_run

MINUTES, STEPS_PER_MINUTE = 20, 90


def cells(setting: Setting) -> Sequence[Cell]:
    minutes, prepared = setting.minutes_or(MINUTES), corpus(setting, CHINESE)
    return [
        Cell(
            "MINI, whole-word masks",
            [pretrain("mini", minutes, seed, STEPS_PER_MINUTE, ("--mask", "whole-word"), by_clock=False)],
            lambda folder: read_run(folder / "run"),
            seed=seed,
            needs={"corpus": prepared},
            minutes=minutes + 0.3,
        )
        for seed in setting.seeds_or(1)
    ]


EXPERIMENT = Experiment(
    about="MINI on Chinese Wikipedia with its own vocabulary and whole-word masks, as long as 20 minutes allow",
    cells=cells,
    columns=(
        Column("held-out MLM loss", "masked_lm"),
        Column("by frequency alone", "unigram_loss"),
        Column("accuracy", "masked_lm_accuracy", ".1%"),
        Column("NSP accuracy", "next_sentence_accuracy", ".1%"),
        Column("steps", "steps", ",.0f"),
        Column("tokens/s", "tokens_per_second", ",.0f"),
    ),
    charts=(
        Curves("masked_lm", "held-out MLM loss", "minutes"),
        Curves("masked_lm_accuracy", "held-out MLM accuracy", "minutes", percent=True),
    ),
)
