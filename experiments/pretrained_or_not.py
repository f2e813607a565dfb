"""What pre-training is worth: the small models of `against_trainer` and `chinese`, fine-tuned, beside the same
architecture that begins at random weights."""

from collections.abc import Sequence
from dataclasses import replace

from experiments import against_trainer, chinese
from experiments.cell import PYTHON, Cell
from experiments.differences import difference, told
from experiments.experiment import Experiment, Rows, Setting
from experiments.pretraining import ENGLISH, corpus, nothing
from experiments.task_cells import CONLL, SMALL_RATE, SST2, Exercise, Start, own_cell, rows_of

LEARNED, RANDOM = "pre-trained", "random weights"
MODEL_SEED = 1  # of the pre-trained models
SEEDS = (0,)
LENGTH = 128  # no row was longer in pre-training
SKIP = ("--skip-bad",)
ANSWER = (*SKIP, "--chinese", "--longest-answer", "50")

ENGLISH_SETS = (replace(SST2, minutes=0.5), replace(CONLL, minutes=0.5, length=LENGTH))
CHINESE_SETS = (
    Exercise("chnsenticorp", "ChnSentiCorp", "classify", "classify", 3000, 2, 1.5, flags=SKIP),
    Exercise("msra", "MSRA-NER", "tag", "tag", 4000, 2, 1.5, flags=SKIP),
    Exercise("cmrc", "CMRC", "answer", "chinese-answer", 500, 2, 3.0, flags=ANSWER, num_test=500),
)


def cells(setting: Setting) -> Sequence[Cell]:
    minutes = setting.minutes_or(against_trainer.MINUTES)
    english = against_trainer.own_cell(corpus(setting, ENGLISH), minutes, MODEL_SEED)
    (other,) = chinese.cells(replace(setting, seeds=(MODEL_SEED,)))
    found = []
    for model, exercises in ((english, ENGLISH_SETS), (other, CHINESE_SETS)):
        for exercise in (one.shortened(setting) for one in exercises):
            rows = rows_of(setting, exercise)
            for seed in setting.seeds_or(*SEEDS):
                learned, fresh = Start(model, "/run", SMALL_RATE), Start(random_cell(model, seed), rate=SMALL_RATE)
                found.append(own_cell(LEARNED, exercise, rows, learned, seed))
                found.append(own_cell(RANDOM, exercise, rows, fresh, seed))
    return found


def random_cell(model: Cell, seed: int) -> Cell:
    write = (PYTHON, "-m", "experiments.random_weights", "{model}/run", "--seed", str(seed), "--out", "{folder}")
    needs = {"model": model}
    return Cell(f"random weights like {model.name}", [write], nothing, seed, needs, minutes=0.1, resumes=False)


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for exercise in (*ENGLISH_SETS, *CHINESE_SETS):
        found = difference(rows, LEARNED, RANDOM, exercise.set, exercise.measure)
        if found is not None:
            sentences.append(f"{exercise.title}: pre-training is worth {told(found)}.")
    return sentences


FIGURES = {"classify": ("accuracy", "accuracy"), "tag": ("F1", "f1"), "chinese-answer": ("F1", "f1")}

EXPERIMENT = Experiment(
    about="English and Chinese MINI fine-tuned, beside the same architecture from random weights",
    cells=cells,
    columns=[exercise.column(*FIGURES[exercise.measure]) for exercise in (*ENGLISH_SETS, *CHINESE_SETS)],
    conclude=conclude,
)
