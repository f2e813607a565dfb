"""What pre-training is worth: the small models of `against_trainer` and `chinese`, and ModernBERT of that size, which
learns faster, fine-tuned beside the same architecture that begins at random weights."""

from collections.abc import Sequence
from dataclasses import replace

from experiments import against_trainer, chinese
from experiments.cell import PYTHON, Cell
from experiments.differences import difference, told
from experiments.experiment import Experiment, Rows, Setting
from experiments.pretraining import CHINESE, ENGLISH, corpus, nothing, pretrain, read_run
from experiments.task_cells import CONLL, SMALL_RATE, SST2, Exercise, Start, own_cell, rows_of

LEARNED, RANDOM = "pre-trained", "random weights"
MODERN_LEARNED, MODERN_RANDOM = "ModernBERT, pre-trained", "ModernBERT, random weights"
SIDES = ((LEARNED, RANDOM), (MODERN_LEARNED, MODERN_RANDOM))
MODERN_MINUTES, MODERN_STEPS_PER_MINUTE = 15, 200  # on one core
MODERN = ("--lr", "2e-3", "--batch-tokens", "1024")
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
    modern = (
        modern_cell(setting, ENGLISH, "English"),
        modern_cell(setting, CHINESE, "Chinese", ("--mask", "whole-word")),
    )
    found = []
    for (learned, random), models in zip(SIDES, ((english, other), modern), strict=True):
        for model, exercises in zip(models, (ENGLISH_SETS, CHINESE_SETS), strict=True):
            for exercise in (one.shortened(setting) for one in exercises):
                rows = rows_of(setting, exercise)
                for seed in setting.seeds_or(*SEEDS):
                    fresh = Start(random_cell(model, seed), rate=SMALL_RATE)
                    found.append(own_cell(learned, exercise, rows, Start(model, "/run", SMALL_RATE), seed))
                    found.append(own_cell(random, exercise, rows, fresh, seed))
    return found


def modern_cell(setting: Setting, file: str, language: str, flags: Sequence[str] = ()) -> Cell:
    minutes, steps = setting.minutes_or(MODERN_MINUTES), MODERN_STEPS_PER_MINUTE
    command = pretrain("mini", minutes, MODEL_SEED, steps, (*MODERN, *flags), recipe="modernbert", by_clock=False)
    name, needs = f"{language} ModernBERT MINI", {"corpus": corpus(setting, file)}
    return Cell(name, [command], lambda folder: read_run(folder / "run"), MODEL_SEED, needs, minutes=minutes)


def random_cell(model: Cell, seed: int) -> Cell:
    write = (PYTHON, "-m", "experiments.random_weights", "{model}/run", "--seed", str(seed), "--out", "{folder}")
    needs = {"model": model}
    return Cell(f"random weights like {model.name}", [write], nothing, seed, needs, minutes=0.1, resumes=False)


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for learned, random in SIDES:
        for exercise in (*ENGLISH_SETS, *CHINESE_SETS):
            found = difference(rows, learned, random, exercise.set, exercise.measure)
            if found is not None:
                sentences.append(f"{exercise.title}, {learned}: worth {told(found)}.")
    return sentences


FIGURES = {"classify": ("accuracy", "accuracy"), "tag": ("F1", "f1"), "chinese-answer": ("F1", "f1")}

EXPERIMENT = Experiment(
    about="English and Chinese MINI fine-tuned, beside the same architecture from random weights",
    cells=cells,
    columns=[exercise.column(*FIGURES[exercise.measure]) for exercise in (*ENGLISH_SETS, *CHINESE_SETS)],
    conclude=conclude,
)
