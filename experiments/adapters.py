"""How little of a model need learn: all of it, low-rank adapters, its heads alone, and two ways of going gently.

The last model of a run counts. Each way has the rate that is usual for it; that of LoRA on all matrices was chosen on
dev.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from bertie.train.folder.run_folder import SUMMARY, read_object
from experiments.cell import Cell, Result
from experiments.differences import difference, told
from experiments.experiment import Column, Experiment, Rows, Setting
from experiments.task_cells import RATE, SST2, Exercise, Start, minilm, own_cell, read_own, rows_of


@dataclass(frozen=True)
class Way:
    flags: tuple[str, ...]
    rate: float = RATE


FULL, LORA = "everything", "LoRA, rank 6 on all matrices"
WAYS = {
    FULL: Way(()),
    LORA: Way(("--lora", "6", "--lora-on", "query,key,value,output,up,down"), 1e-3),
    "LoRA, rank 8 on queries and values": Way(("--lora", "8", "--lora-on", "query,value"), 5e-4),
    "heads alone": Way(("--freeze", "all"), 1e-3),
    "layer decay 0.9": Way(("--layer-decay", "0.9")),
    "gradual unfreezing, every 50 steps": Way(("--unfreeze-every", "50")),  # all of MiniLM learns after 350 of 469
}
SEEDS = (0, 1, 2)
ALLOWED = 0.01  # below the model that learned as a whole


def cells(setting: Setting) -> Sequence[Cell]:
    base, usual = minilm(), SST2.shortened(setting)
    rows = rows_of(setting, usual)
    found = []
    for name, way in WAYS.items():
        exercise = replace(usual, flags=way.flags)
        for seed in setting.seeds_or(*SEEDS):
            cell = own_cell(name, exercise, rows, Start(base, rate=way.rate), seed)
            found.append(replace(cell, read=partial(read, exercise=exercise)))
    return found


def read(folder: Path, exercise: Exercise) -> Result:
    """With the share of weights that learned, and how many examples a second were learned."""
    result, summary = read_own(folder, exercise), read_object(folder / "run" / SUMMARY)
    weights = summary["weights"]
    speed = exercise.epochs * exercise.num_rows / summary["seconds"]
    result["figures"] |= {"share": weights["learned"] / weights["all"], "speed": speed}
    return result


def conclude(rows: Rows) -> list[str]:
    found = difference(rows, LORA, FULL, SST2.set, SST2.measure)
    if found is None:
        return []
    share = fmean(one["figures"]["share"] for one in rows[LORA])
    verdict = "within 1 point of" if found.value >= -ALLOWED else "MORE THAN 1 POINT BELOW"
    return [f"{SST2.title}: LoRA, with {share:.2%} of the weights, is {verdict} full fine-tuning: {told(found)}."]


EXPERIMENT = Experiment(
    about="all-MiniLM-L6-v2 on SST-2 (5,000 rows, 3 epochs): everything, LoRA, heads alone, layer decay, unfreezing",
    cells=cells,
    columns=(
        SST2.column("accuracy", "accuracy"),
        Column("weights that learned", "share", ".2%"),
        Column("examples/s", "speed", ".0f"),
    ),
    conclude=conclude,
)
