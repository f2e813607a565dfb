"""What the descendants' ideas are worth in equal time: the same text, vocabulary and size, by the clock.

Losses are each objective's own and cannot be compared across rows; what can be is the quality after fine-tuning.
"""

from collections.abc import Sequence

from experiments.cell import Cell
from experiments.experiment import Column, Curves, Experiment, Setting
from experiments.pretraining import ENGLISH, corpus, pretrain, read_run

MINUTES, STEPS_PER_MINUTE = 5, 300
RECIPES = ("bert", "bert-wwm", "spanbert", "roberta", "albert", "electra")


def cells(setting: Setting) -> Sequence[Cell]:
    minutes, prepared = setting.minutes_or(MINUTES), corpus(setting, ENGLISH)
    return [
        Cell(
            name,
            [pretrain("tiny", minutes, seed, STEPS_PER_MINUTE, recipe=name)],
            lambda folder: read_run(folder / "run"),
            seed=seed,
            needs={"corpus": prepared},
            minutes=minutes + 0.3,
        )
        for name in RECIPES
        for seed in setting.seeds_or(1)
    ]


EXPERIMENT = Experiment(
    about="TINY on English Wikipedia in equal time, one recipe of the family a row",
    cells=cells,
    columns=(
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
