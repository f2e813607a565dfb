"""How the score falls when words are misspelt, and how much of that is won back by misspelling them in training.

English words are mistyped or lose the space before them; Chinese characters are exchanged for one that looks or sounds
alike. Real weights learn from some rows of SST-2; a small model from all of them, since there is much to learn: a word
can be misspelt in a hundred ways. Its share of misspelt words was chosen on dev.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from experiments import chinese
from experiments.cell import PYTHON, Cell, bertie
from experiments.experiment import Column, Curves, Experiment, Rows, Setting
from experiments.pretrained_or_not import CHINESE_SETS, MODEL_SEED
from experiments.pretraining import nothing
from experiments.task_cells import SMALL_RATE, SST2, Exercise, Start, finetune, minilm, read_scores, rows_of

CLEAN, NOISY = "clean rows", "every second row misspelt"
SMALL_CLEAN, SMALL_NOISY = (f"TINY from nothing, all rows: {name}" for name in (CLEAN, NOISY))
RATES = "0,0.1,0.2,0.3,0.4,0.5"
LEARNED, SMALL_LEARNED = "0.3", "0.5"  # of the words of a misspelt row
AT = 30  # percent of words, where the loss is told
BAR = 1 / 3  # of it to be won back
SEEDS = (0, 1, 2)
MEASURING = 1.5  # minutes
ENGLISH, CHNSENTICORP = replace(SST2, epochs=2, minutes=3.0), CHINESE_SETS[0]
ALL_ROWS = replace(SST2, num_rows=67_349, epochs=2, minutes=2.0, length=64, own_batch=64)
SMALL_RATE_FROM_NOTHING, PIECES = 1e-3, 4000
SETS = (ENGLISH, CHNSENTICORP)


def cells(setting: Setting) -> Sequence[Cell]:
    (model,) = chinese.cells(replace(setting, seeds=(MODEL_SEED,)))
    starts = {ENGLISH: Start(minilm()), CHNSENTICORP: Start(model, "/run", SMALL_RATE)}
    studies = [(exercise.shortened(setting), start, (CLEAN, NOISY), LEARNED) for exercise, start in starts.items()]
    every = ALL_ROWS.shortened(setting)
    studies.insert(1, (every, from_nothing(rows_of(setting, every)), (SMALL_CLEAN, SMALL_NOISY), SMALL_LEARNED))
    found = []
    for exercise, start, (clean, noisy), learned in studies:
        rows = rows_of(setting, exercise)
        for seed in setting.seeds_or(*SEEDS):
            for name, flags in ((clean, ()), (noisy, ("--noise", learned))):
                found.append(noise_cell(name, exercise, rows, start, seed, flags))
    return found


def from_nothing(rows: Cell) -> Start:
    """Random weights, and a vocabulary of the rows themselves."""
    words = ("vocab", "train", "{rows}/train.jsonl", "--size", PIECES, "--overwrite", "--out", "{folder}/vocabulary")
    vocabulary = Cell("vocabulary of SST-2", [bertie(*words)], nothing, needs={"rows": rows}, minutes=0.1)
    how = ("--recipe", "bert", "--size", "tiny", "--vocab")
    return Start(vocabulary, "/vocabulary", SMALL_RATE_FROM_NOTHING, how)


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
    pairs = {(CLEAN, NOISY): SETS, (SMALL_CLEAN, SMALL_NOISY): (ALL_ROWS,)}
    found = (won_back(rows, one, *names) for names, exercises in pairs.items() for one in exercises)
    return [sentence for sentence in found if sentence is not None]


def won_back(rows: Rows, exercise: Exercise, clean_name: str = CLEAN, noisy_name: str = NOISY) -> str | None:
    clean, fallen, noisy = (
        mean(rows, name, f"{exercise.set}_accuracy_{percent}")
        for name, percent in ((clean_name, 0), (clean_name, AT), (noisy_name, AT))
    )
    if clean is None or fallen is None or noisy is None:
        return None
    of = "" if clean_name == CLEAN else ", TINY"
    told = f"{exercise.title}{of}: {AT}% of misspelt words bring accuracy from {clean:.1%} down to {fallen:.1%}"
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
