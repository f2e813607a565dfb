"""Held-out nats per character against time, for the defaults of `bertie pretrain` as they were and as they are."""

from collections.abc import Sequence

from experiments.against_trainer import first_time
from experiments.cell import Cell
from experiments.experiment import Experiment, Rows, Setting
from experiments.learning_per_minute import BASE, CHARTS, COLUMNS, MINUTES, OLD_DEFAULT, Factor, both_cells

NEW_DEFAULT = Factor(BASE)  # the parts and settings of the recipe quick, under the name that `learning_per_minute` has


def cells(setting: Setting) -> Sequence[Cell]:
    minutes = setting.minutes_or(MINUTES)
    return [
        cell
        for seed in setting.seeds_or(1)
        for factor in (OLD_DEFAULT, NEW_DEFAULT)
        for cell in both_cells(setting, factor, minutes, seed)
    ]


def conclude(rows: Rows) -> list[str]:
    if not {OLD_DEFAULT.name, NEW_DEFAULT.name} <= rows.keys():
        return []
    old, new = (rows[factor.name][0] for factor in (OLD_DEFAULT, NEW_DEFAULT))
    goal, minutes = old["figures"]["nats"], old["figures"]["minutes"]
    reached = first_time(new["curves"]["nats"], goal)
    if reached is None:
        return [f"The new defaults do not get to {goal:.3f}."]
    share = f"{reached / minutes:.2f} of the time"
    return [f"The old defaults get to {goal:.3f} in {minutes:.1f} CPU minutes; the new ones in {reached:.1f}, {share}."]


EXPERIMENT = Experiment(
    about="MINI on English Wikipedia with the old and the new defaults: held-out nats per character against CPU time",
    cells=cells,
    columns=COLUMNS,
    charts=CHARTS,
    conclude=conclude,
    alone=False,
)
