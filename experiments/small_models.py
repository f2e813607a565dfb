"""The small models that the defaults of `bertie pretrain` make: English in 100 minutes of two cores, Chinese in 60."""

from collections.abc import Sequence
from dataclasses import replace

from bertie.models.recipes import DEFAULT, SETTINGS
from experiments.cell import Cell
from experiments.experiment import Experiment, Setting
from experiments.learning_per_minute import CHARTS, COLUMNS, TOKENS_PER_MINUTE, Factor, both_cells
from experiments.pretraining import CHINESE, ENGLISH

NEW_DEFAULT = Factor(
    "quick", recipe=DEFAULT, rate=f"{SETTINGS[DEFAULT].rate:g}", batch_tokens=SETTINGS[DEFAULT].batch_tokens
)
CORES = 2
MINUTES = {ENGLISH: 100, CHINESE: 60}  # of two cores, about: the budgets are in tokens
NAMES = {ENGLISH: "English MINI", CHINESE: "Chinese MINI"}
SEED = 1


def cells(setting: Setting) -> Sequence[Cell]:
    return [cell for file in MINUTES for seed in setting.seeds_or(SEED) for cell in model_cells(setting, file, seed)]


def model_cells(setting: Setting, file: str, seed: int = SEED) -> tuple[Cell, Cell]:
    """The run, which the fine-tuning starts from, and what is measured of it."""
    minutes = CORES * setting.minutes_or(MINUTES[file])
    return both_cells(setting, replace(NEW_DEFAULT, name=NAMES[file]), minutes, seed, file)


EXPERIMENT = Experiment(
    about=f"MINI, English and Chinese, with the defaults; {TOKENS_PER_MINUTE * CORES:,} tokens a minute of two cores",
    cells=cells,
    columns=COLUMNS,
    charts=CHARTS,
    alone=False,
)
