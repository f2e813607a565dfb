"""What learns fastest: one factor at a time from a base, all measured on the same masked words of the same text.

Budgets are in tokens, so that a cell does not depend on what else the machine does. The CPU time of a token is measured
beside each cell, on one thread, and the table compares cells after equal tokens and after equal CPU time.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.cell import PYTHON, Cell, Result, bertie
from experiments.experiment import Column, Curves, Experiment, Rows, Setting
from experiments.pretraining import ENGLISH, nothing, stem

MINUTES, TOKENS_PER_MINUTE = 10, 120_000  # of one core, about
POINTS = 8  # checkpoints of a run: where the curve is measured
FILL = 0.8  # of a step's tokens are real: documents are cut evenly
PLUGIN = "experiments/variants.py"
OLD, BASE = "BERT as it was (5e-4, 4,096 tokens)", "ModernBERT, 2e-3, 1,024 tokens"


@dataclass(frozen=True)
class Factor:
    """A configuration by what differs from the base."""

    name: str
    recipe: str = "modernbert"
    rate: str = "2e-3"
    batch_tokens: int = 1024
    vocab_size: int = 16_000
    size: str = "mini"
    flags: tuple[str, ...] = ()
    share: float = 1.0  # of the tokens of the others, where a token costs more
    fill: float = FILL


OLD_DEFAULT = Factor(OLD, recipe="bert", rate="5e-4", batch_tokens=4096)
FACTORS = (
    Factor(BASE),
    OLD_DEFAULT,
    Factor("vocabulary of 8,000", vocab_size=8000),
    Factor("rows of 32, 64, then 128", flags=("--curriculum", "32:0.3,64:0.3,128:0.4"), fill=0.75),
    Factor("steps of 512 tokens", batch_tokens=512),
    Factor("rate 4e-3", rate="4e-3"),
    Factor("masks of 15%", flags=("--mask-rate", "0.15")),
    Factor("packed rows", recipe="packed", fill=0.95),
    Factor("rate 1e-3", rate="1e-3"),
    Factor("steps of 2,048 tokens", batch_tokens=2048),
    Factor("learned positions", recipe="learned-positions"),
    Factor("plain feed-forward", recipe="plain-feed-forward"),
    Factor("dropout of 0.1", recipe="dropout"),
    Factor("norms after the residual", recipe="post-norm"),
    Factor("no windows", recipe="wide"),
    Factor("vocabulary of 4,000", vocab_size=4000),
    Factor("steps of 4,096 tokens", batch_tokens=4096),
    Factor("steps of 4,096 tokens, Muon", batch_tokens=4096, flags=("--optimizer", "muon")),
    Factor("BERT without NSP, 1e-3, 1,024 tokens", recipe="bert", rate="1e-3", flags=("--sentences", "none")),
    Factor("SMALL", size="small", share=0.4),
)


def cells(setting: Setting) -> Sequence[Cell]:
    minutes = setting.minutes_or(MINUTES)
    return [
        cell
        for seed in setting.seeds_or(1)
        for factor in FACTORS
        for cell in both_cells(setting, factor, minutes, seed)
    ]


def both_cells(setting: Setting, factor: Factor, minutes: float, seed: int, file: str = ENGLISH) -> tuple[Cell, Cell]:
    """The run, and what is measured of it: another measure does not repeat the run."""
    text = text_split(setting, file)
    corpus = corpus_of(text, file, factor.vocab_size)
    run = run_cell(corpus, factor, minutes, seed)
    judge = (PYTHON, "-m", "experiments.nats_per_character", "{run}/run", "{text}/held_out.jsonl.gz")
    pace = (PYTHON, "-m", "experiments.cpu_time", "{run}/run", "--out", "{folder}/cpu_time.json")
    commands = [(*judge, "--out", "{folder}/nats.json"), pace]
    needs = {"run": run, "text": text}
    measured = Cell(factor.name, commands, read, seed, needs, minutes=1, resumes=False, part="measured")
    return run, measured


def text_split(setting: Setting, file: str) -> Cell:
    command = (PYTHON, "-m", "experiments.text_split", "{text}", "--one-in", "50", "--out", "{folder}")
    return Cell(f"split of {stem(file)}", [command], nothing, inputs={"text": setting.data / file}, minutes=0.3)


def corpus_of(text: Cell, file: str, vocab_size: int) -> Cell:
    """From the documents to learn from alone, vocabulary included."""
    source = "{text}/train.jsonl.gz"
    train = bertie("vocab", "train", source, "--size", vocab_size, "--workers", 1, "--out", "{folder}")
    vocabulary = Cell(
        f"vocabulary of {stem(file)}, {vocab_size}", [train], nothing, needs={"text": text}, minutes=1, resumes=False
    )
    build = bertie("corpus", "build", source, "--tokenizer", "{vocabulary}", "--workers", 1, "--out", "{folder}")
    needs = {"text": text, "vocabulary": vocabulary}
    return Cell(f"corpus of {stem(file)}, {vocab_size}", [build], nothing, needs=needs, minutes=0.5)


def run_cell(corpus: Cell, factor: Factor, minutes: float, seed: int) -> Cell:
    tokens = round(minutes * TOKENS_PER_MINUTE * factor.share)
    every = max(1, round(tokens / (factor.batch_tokens * factor.fill) / POINTS))
    command = bertie(
        *("pretrain", "--recipe", factor.recipe, "--size", factor.size, "--plugin", PLUGIN),
        *("--corpus", "{corpus}", "--out", "{folder}/run", "--tokens", tokens, "--seed", seed),
        *("--lr", factor.rate, "--batch-tokens", factor.batch_tokens, *factor.flags),
        *("--save-every", every, "--keep", 2 * POINTS, "--eval-rows", 64),
    )
    return Cell(factor.name, [command], nothing, seed, {"corpus": corpus}, minutes=minutes, part="run")


def read(folder: Path) -> Result:
    """The curve is against minutes of one core."""
    found = json.loads((folder / "nats.json").read_text("utf-8"))
    microseconds = json.loads((folder / "cpu_time.json").read_text("utf-8"))["microseconds"]
    curve = [[tokens * microseconds / 60e6, nats] for tokens, nats in found["points"]]
    figures = {
        "nats": curve[-1][1],
        "tokens": found["points"][-1][0],
        "microseconds": microseconds,
        "minutes": curve[-1][0],
        "unknown": found["num_unknown"] / found["num_pieces"],
    }
    return {"figures": figures, "curves": {"nats": curve}}


def at_minutes(curve: Sequence[Sequence[float]], minutes: float) -> float:
    """Between two points by the logarithm of time, in which such curves are nearly straight."""
    times, values = zip(*curve, strict=True)
    return float(np.interp(math.log(minutes), np.log(times), values))


def conclude(rows: Rows) -> list[str]:
    """Each beside the base after the time of the shorter of the two: the longer one's rate is not at its end there,
    which is to its disadvantage."""
    if BASE not in rows:
        return []
    base, sentences = rows[BASE][0]["curves"]["nats"], []
    for name, (result, *_) in rows.items():
        curve = result["curves"]["nats"]
        minutes = min(curve[-1][0], base[-1][0])
        own, other = at_minutes(curve, minutes), at_minutes(base, minutes)
        if name != BASE:
            sentences.append(
                f"{name}: {own:.3f} nats per character after {minutes:.1f} CPU minutes, "
                f"the base {other:.3f} ({own - other:+.3f})."
            )
    return sentences


COLUMNS = (
    Column("held-out nats per character", "nats"),
    Column("tokens", "tokens", ",.0f"),
    Column("CPU microseconds per token", "microseconds", ".0f"),
    Column("CPU minutes", "minutes", ".1f"),
)
CHARTS = (Curves("nats", "held-out nats per character", "minutes of one core"),)

EXPERIMENT = Experiment(
    about="MINI on English Wikipedia, one factor at a time: held-out nats per character in equal CPU time",
    cells=cells,
    columns=COLUMNS,
    charts=CHARTS,
    conclude=conclude,
    alone=False,
)
