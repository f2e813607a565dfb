"""Cells of pre-training: real text enters, a vocabulary, a corpus, a run and its curves leave."""

from collections.abc import Sequence
from pathlib import Path

from bertie.train.folder.log import standing_records
from bertie.train.folder.run_folder import SUMMARY, read_object
from experiments.cell import Cell, Command, Result, bertie
from experiments.experiment import Setting

VOCAB_SIZE = 16_000
ENGLISH, CHINESE = "en_wiki.jsonl.gz", "zh_wiki.jsonl.gz"
EVALUATIONS = 25  # of a run, about


def vocabulary(setting: Setting, file: str, size: int = VOCAB_SIZE) -> Cell:
    """WordPiece, lower-cased; a Chinese character is a word of its own."""
    train = bertie("vocab", "train", "{text}", "--size", size, "--workers", 2, "--out", "{folder}")
    text = {"text": setting.data / file}
    return Cell(f"vocabulary of {stem(file)}", [train], nothing, inputs=text, minutes=1, resumes=False)


def corpus(setting: Setting, file: str) -> Cell:
    """With its own vocabulary. Where that was trained on the held-out text too, both sides of a comparison have it."""
    build = bertie("corpus", "build", "{text}", "--tokenizer", "{vocabulary}", "--out", "{folder}")
    needs, text = {"vocabulary": vocabulary(setting, file)}, {"text": setting.data / file}
    return Cell(f"corpus of {stem(file)}", [build], nothing, needs=needs, inputs=text, minutes=0.5)


def pretrain(
    size: str,
    minutes: float,
    seed: int,
    steps_per_minute: float,
    flags: Sequence[str] = (),
    *,
    recipe: str = "bert",
    by_clock: bool = True,
) -> Command:
    """A run from the need `corpus` into `{folder}/run`. By the clock `steps_per_minute` spaces the evaluations; else it
    says how many steps there are, so that the result does not depend on what else the machine does."""
    steps = num_steps(minutes, steps_per_minute)
    eval_every = max(5, steps // EVALUATIONS)
    words = ["pretrain", "--recipe", recipe, "--size", size, "--corpus", "{corpus}", "--out", "{folder}/run"]
    budget = ["--time", f"{round(minutes * 60)}s"] if by_clock else ["--steps", steps]
    regular = ["--seed", seed, "--eval-every", eval_every, "--save-every", 3 * eval_every]
    return bertie(*words, *budget, *regular, *flags)


def num_steps(minutes: float, steps_per_minute: float) -> int:
    return max(1, round(minutes * steps_per_minute))


def read_run(run: Path) -> Result:
    """Curves are against minutes of steps alone: evaluations and checkpoints do not count."""
    summary = read_object(run / SUMMARY)
    seconds, tokens = 0.0, 0
    curves: dict[str, list[list[float]]] = {"masked_lm": [], "masked_lm_accuracy": []}
    for record in standing_records(run):
        if record["event"] == "step":
            seconds += (record["tokens"] - tokens) / record["tokens_per_second"]
            tokens = record["tokens"]
        elif record["event"] == "evaluation":
            for name, points in curves.items():
                points.append([seconds / 60, record[name]])
    figures = {name: value for name, value in summary["evaluation"].items() if isinstance(value, int | float)}
    counts = {"steps": summary["steps"], "tokens": summary["tokens"], "minutes": seconds / 60}
    return {"figures": {**figures, **counts, "tokens_per_second": tokens / seconds}, "curves": curves}


def nothing(folder: Path) -> Result:
    """Of a preparation only its folder counts."""
    return {"figures": {}, "curves": {}}


def stem(file: str) -> str:
    return file.partition(".")[0]
