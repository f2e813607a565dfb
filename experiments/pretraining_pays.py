"""What pre-training with the defaults is worth: the models of `small_models` on six tasks, with all rows and with few,
beside the same architecture from random weights. Either side learns at the rate that is best for it on dev."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.cell import Cell
from experiments.differences import difference, told
from experiments.experiment import Experiment, Rows, Setting
from experiments.pretrained_or_not import LEARNED, LENGTH, RANDOM, SKIP, random_cell
from experiments.pretraining import CHINESE, ENGLISH
from experiments.small_models import model_cells
from experiments.task_cells import Exercise, Start, own_cell, rate_cell, rows_of

SEEDS = (0, 1, 2)
RATES, RATE_SEED = (1e-4, 3e-4, 1e-3), 10  # a seed that no result has
ALL = 1 << 30  # rows
ENOUGH = 4  # of the six sets, where all rows are learned from


@dataclass(frozen=True)
class Amount:
    """How many rows are learned from, and how often; None: all, as often as the set's own exercise says."""

    title: str
    num_rows: int = ALL
    epochs: int | None = None

    def of(self, exercise: Exercise) -> Exercise:
        share = min(1.0, self.num_rows * (self.epochs or 0) / 100_000) if self.epochs else 1.0
        minutes = max(0.3, exercise.minutes * share)
        return replace(exercise, num_rows=self.num_rows, epochs=self.epochs or exercise.epochs, minutes=minutes)


AMOUNTS = (Amount("all rows"), Amount("1,000 rows", 1000, 10), Amount("100 rows", 100, 20))
SETS = {
    ENGLISH: (
        Exercise("sst2_with_dev", "SST-2", "classify", "classify", ALL, 2, 10.0, LENGTH, has_dev=True),
        Exercise("conll_with_dev", "CoNLL-2003", "tag", "tag", ALL, 3, 5.0, LENGTH, has_dev=True),
        Exercise("mrpc_with_dev", "MRPC", "pair", "classify", ALL, 5, 3.0, LENGTH, has_dev=True),
        Exercise("stsb_with_dev", "STS-B", "similarity", "similarity", ALL, 5, 3.0, LENGTH, has_dev=True),
    ),
    CHINESE: (
        Exercise(
            "chnsenticorp_with_dev", "ChnSentiCorp", "classify", "classify", ALL, 3, 5.0, LENGTH, SKIP, has_dev=True
        ),
        Exercise("msra_with_dev", "MSRA-NER", "tag", "tag", ALL, 3, 8.0, LENGTH, SKIP, has_dev=True),
    ),
}
EXERCISES = tuple(exercise for exercises in SETS.values() for exercise in exercises)
FIGURES = {"classify": ("accuracy", "accuracy"), "tag": ("F1", "f1"), "similarity": ("Spearman", "spearman")}


def cells(setting: Setting) -> Sequence[Cell]:
    found = []
    for amount in AMOUNTS:
        for file, exercises in SETS.items():
            model, _ = model_cells(setting, file)
            for exercise in (amount.of(one).shortened(setting) for one in exercises):
                rows = rows_of(setting, exercise)
                learned, fresh = Start(model, "/run"), Start(random_cell(model, RATE_SEED))
                rates = {
                    side: rate_cell(f"{side}, {amount.title}", exercise, rows, start, RATES, RATE_SEED)
                    for side, start in ((LEARNED, learned), (RANDOM, fresh))
                }
                for seed in setting.seeds_or(*SEEDS):
                    sides = {LEARNED: learned, RANDOM: Start(random_cell(model, seed))}
                    found += [
                        own_cell(f"{side}, {amount.title}", exercise, rows, replace(start, rate=rates[side]), seed)
                        for side, start in sides.items()
                    ]
    return found


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for amount in AMOUNTS:
        above = below = 0
        for exercise in EXERCISES:
            learned, random = (f"{side}, {amount.title}" for side in (LEARNED, RANDOM))
            found = difference(rows, learned, random, exercise.set, exercise.measure)
            if found is not None:
                above, below = above + (found.low > 0), below + (found.high < 0)
                sentences.append(f"{exercise.title}, {amount.title}: worth {told(found)}.")
        wanted = ENOUGH if amount.num_rows == ALL else len(EXERCISES)
        verdict = "as wanted" if above >= wanted and not below else f"wanted: at least {wanted} and 0"
        sentences.append(f"{amount.title}: above zero on {above}, below on {below} ({verdict}).")
    return sentences


EXPERIMENT = Experiment(
    about="the models of small_models on six tasks with all, 1,000 and 100 rows, beside random weights",
    cells=cells,
    columns=[exercise.column(*FIGURES[exercise.measure]) for exercise in EXERCISES],
    conclude=conclude,
    alone=False,
)
