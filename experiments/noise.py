"""How the score falls when words are misspelt, and how much of that is won back by misspelling them in training.

English words are mistyped or lose the space before them; Chinese characters are exchanged for one that looks or sounds
alike.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from experiments import chinese
from experiments.cell import PYTHON, Cell
from experiments.experiment import Column, Curves, Experiment, Rows, Setting
from experiments.pretrained_or_not import CHINESE_SETS, MODEL_SEED
from experiments.task_cells import SMALL_RATE, SST2, Exercise, Start, finetune, minilm, read_scores, rows_of

CLEAN, NOISY = "clean rows", "every second row misspelt"
RATES = "0,0.1,0.2,0.3,0.4,0.5"
LEARNED = "0.3"  # of the words of a misspelt row
AT = 30  # percent of words, where the loss is told
BAR = 1 / 3  # of it to be won back
SEEDS = (0, 1, 2)
MEASURING = 1.5  # minutes
ENGLISH, CHNSENTICORP = replace(SST2, epochs=2, minutes=3.0), CHINESE_SETS[0]
SETS = (ENGLISH, CHNSENTICORP)


def cells(setting: Setting) -> Sequence[Cell]:
    (model,) = chinese.cells(replace(setting, seeds=(MODEL_SEED,)))
    starts = {ENGLISH.set: Start(minilm()), CHNSENTICORP.set: Start(model, "/run", SMALL_RATE)}
    found = []
    for exercise in (one.shortened(setting) for one in SETS):
        rows = rows_of(setting, exercise)
        for seed in setting.seeds_or(*SEEDS):
            for name, flags in ((CLEAN, ()), (NOISY, ("--noise", LEARNED))):
                found.append(noise_cell(name, exercise, rows, starts[exercise.set], seed, flags))
    return found


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
    return [sentence for exercise in SETS if (sentence := won_back(rows, exercise)) is not None]


def won_back(rows: Rows, exercise: Exercise) -> str | None:
    clean, fallen, noisy = (
        mean(rows, name, f"{exercise.set}_accuracy_{percent}")
        for name, percent in ((CLEAN, 0), (CLEAN, AT), (NOISY, AT))
    )
    if clean is None or fallen is None or noisy is None:
        return None
    told = f"{exercise.title}: {AT}% of misspelt words bring accuracy from {clean:.1%} down to {fallen:.1%}"
    if clean <= fallen:
        return f"{told}: nothing is lost."
    share = (noisy - fallen) / (clean - fallen)
    verdict = "at least a third" if share >= BAR else "LESS THAN A THIRD"
    return f"{told}; learned with noise it is {noisy:.1%}: {share:.0%} of the loss is won back, {verdict}."


def mean(rows: Rows, name: str, figure: str) -> float | None:
    found = [one["figures"][figure] for one in rows.get(name, ()) if figure in one["figures"]]
    return fmean(found) if found else None


EXPERIMENT = Experiment(
    about="accuracy against the share of misspelt words, learned from clean rows and with --noise 0.3",
    cells=cells,
    columns=[
        Column(f"{exercise.title}, {percent}%", f"{exercise.set}_accuracy_{percent}", ".1%")
        for exercise in SETS
        for percent in (0, 10, AT, 50)
    ],
    charts=[Curves(one.set, f"{one.title} accuracy", "% of words misspelt", percent=True) for one in SETS],
    conclude=conclude,
)
