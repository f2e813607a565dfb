"""How the score falls when words are misspelt, and how much of that is won back by misspelling them in training.

English words are mistyped or lose the space before them; Chinese characters are exchanged for one that looks or sounds
alike. There is much to learn, since a word can be misspelt in a hundred ways: SST-2 is learned from some rows and from
all of them, by real weights and by a small model, whose share of misspelt words was chosen on dev.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from experiments import chinese
from experiments.cell import PYTHON, Cell, bertie
from experiments.experiment import Column, Curves, Experiment, Rows, Setting
from experiments.pretrained_or_not import CHINESE_SETS, MODEL_SEED
from experiments.pretraining import nothing
from experiments.task_cells import SMALL_RATE, SST2, Exercise, Start, finetune, minilm, read_scores, rows_of

CLEAN, NOISY = "clean rows", "every second row misspelt"
RATES = "0,0.1,0.2,0.3,0.4,0.5"
AT = 30  # percent of words, where the loss is told
BAR = 1 / 3  # of it to be won back
SEEDS = (0, 1, 2)
MEASURING = 1.5  # minutes
SOME_ROWS, CHNSENTICORP = replace(SST2, epochs=2, minutes=3.0), CHINESE_SETS[0]
ALL_ROWS = replace(SST2, num_rows=67_349, epochs=2, minutes=2.0, length=64, own_batch=64)
SETS = (SOME_ROWS, CHNSENTICORP)
ALL_ROWS_RATE, SMALL_RATE_FROM_NOTHING, PIECES = 1e-4, 1e-3, 4000


def small_from_nothing(setting: Setting, exercise: Exercise) -> Start:
    """Random weights, and a vocabulary of the rows themselves."""
    words = ("vocab", "train", "{rows}/train.jsonl", "--size", PIECES, "--overwrite", "--out", "{folder}/vocabulary")
    needs = {"rows": rows_of(setting, exercise)}
    vocabulary = Cell("vocabulary of SST-2", [bertie(*words)], nothing, needs=needs, minutes=0.1)
    how = ("--recipe", "bert", "--size", "tiny", "--tokenizer")
    return Start(vocabulary, "/vocabulary", SMALL_RATE_FROM_NOTHING, how)


def chinese_mini(setting: Setting, exercise: Exercise) -> Start:
    (model,) = chinese.cells(replace(setting, seeds=(MODEL_SEED,)))
    return Start(model, "/run", SMALL_RATE)


@dataclass(frozen=True)
class Study:
    """One model that learns from one set, as it is and misspelt."""

    exercise: Exercise
    start: Callable[[Setting, Exercise], Start]
    noise: str  # of the words of a misspelt row
    of: str = ""  # where there is more than one study of the set
    seeds: tuple[int, ...] = SEEDS

    def named(self, name: str) -> str:
        return f"{self.of}: {name}" if self.of else name

    def cells(self, setting: Setting) -> list[Cell]:
        exercise = self.exercise.shortened(setting)
        start, rows = self.start(setting, exercise), rows_of(setting, exercise)
        return [
            noise_cell(self.named(name), exercise, rows, start, seed, flags)
            for seed in setting.seeds_or(*self.seeds)
            for name, flags in ((CLEAN, ()), (NOISY, ("--noise", self.noise)))
        ]


STUDIES = (
    Study(SOME_ROWS, lambda setting, exercise: Start(minilm()), "0.3"),
    Study(ALL_ROWS, small_from_nothing, "0.5", "TINY from nothing, all rows"),
    Study(CHNSENTICORP, chinese_mini, "0.3"),
    Study(
        replace(ALL_ROWS, epochs=1, minutes=8.0, own_batch=32),
        lambda setting, exercise: Start(minilm(), rate=ALL_ROWS_RATE),
        "0.5",
        "all rows",
        seeds=SEEDS[:1],  # a quarter of an hour each
    ),
)


def cells(setting: Setting) -> Sequence[Cell]:
    return [cell for study in STUDIES for cell in study.cells(setting)]


def noise_cell(name: str, exercise: Exercise, rows: Cell, start: Start, seed: int, flags: Sequence[str]) -> Cell:
    learned = replace(exercise, flags=(*exercise.flags, *flags))
    model = ("--model", "{folder}/run/model", "--rows", "{rows}/test.jsonl", "--rates", RATES)
    skip = ("--skip-bad",) if exercise.skips else ()
    measure = (PYTHON, "-m", "experiments.noise_scores", exercise.set, *model, *skip, "--out", "{folder}/scores.json")
    return Cell(
        name,
        [finetune(learned, start, seed), measure],
        read_scores,
        seed=seed,
        needs={"base": start.cell, "rows": rows},
        minutes=exercise.minutes + MEASURING,
        part=exercise.title,
    )


def conclude(rows: Rows) -> list[str]:
    found = (won_back(rows, study) for study in STUDIES)
    return [sentence for sentence in found if sentence is not None]


def won_back(rows: Rows, study: Study) -> str | None:
    clean, fallen, noisy = (
        mean(rows, study.named(name), f"{study.exercise.set}_accuracy_{percent}")
        for name, percent in ((CLEAN, 0), (CLEAN, AT), (NOISY, AT))
    )
    if clean is None or fallen is None or noisy is None:
        return None
    title = f"{study.exercise.title}, {study.of}" if study.of else study.exercise.title
    told = f"{title}: {AT}% of misspelt words bring accuracy from {clean:.1%} down to {fallen:.1%}"
    if clean <= fallen:
        return f"{told}: nothing is lost."
    share = (noisy - fallen) / (clean - fallen)
    verdict = "at least a third" if share >= BAR else "LESS THAN A THIRD"
    return f"{told}; learned with noise it is {noisy:.1%}: {share:.0%} of the loss is won back, {verdict}."


def mean(rows: Rows, name: str, figure: str) -> float | None:
    found = [one["figures"][figure] for one in rows.get(name, ()) if figure in one["figures"]]
    return fmean(found) if found else None


EXPERIMENT = Experiment(
    about="accuracy against the share of misspelt words, learned from clean rows and with --noise",
    cells=cells,
    columns=[
        Column(f"{exercise.title}, {percent}%", f"{exercise.set}_accuracy_{percent}", ".1%")
        for exercise in SETS
        for percent in (0, 10, AT, 50)
    ],
    charts=[Curves(one.set, f"{one.title} accuracy", "% of words misspelt", percent=True) for one in SETS],
    conclude=conclude,
)
