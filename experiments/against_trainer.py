"""How soon bertie is where the `transformers` Trainer gets in its time: same weights, rows, masks and schedule."""

import json
from collections.abc import Sequence
from pathlib import Path

from experiments.cell import PEERS, PYTHON, Cell, Result
from experiments.experiment import Column, Curves, Experiment, Rows, Setting
from experiments.pretraining import ENGLISH, EVALUATIONS, corpus, num_steps, pretrain, read_run
from experiments.store import ROOT

MINUTES, PEER_SHARE = 40, 0.5
STEPS_PER_MINUTE, PEER_STEPS_PER_MINUTE = 102, 32  # of bertie as measured: they make 40 minutes; of the peer, about
TOKENS_PER_MINUTE = 600_000  # written for the peer: more than it can take, so that no row comes again
OURS, PEER = "bertie", "transformers Trainer"
PEER_FILES = ("experiments/peers/trainer.py", "benchmarks/contenders/pretrain_trainer.py")


def cells(setting: Setting) -> Sequence[Cell]:
    minutes, prepared = setting.minutes_or(MINUTES), corpus(setting, ENGLISH)
    seeds = setting.seeds_or(1)
    return [
        *(own_cell(prepared, minutes, seed) for seed in seeds),
        *(peer_cell(prepared, minutes, seed) for seed in seeds),
    ]


def own_cell(prepared: Cell, minutes: float, seed: int) -> Cell:
    commands = [pretrain("mini", minutes, seed, STEPS_PER_MINUTE, by_clock=False)]
    return Cell(OURS, commands, read_own, seed=seed, needs={"corpus": prepared}, minutes=minutes + 0.3)


def peer_cell(prepared: Cell, whole: float, seed: int) -> Cell:
    """The first part of the same schedule: at every step the learning rate that bertie has at that step."""
    minutes, steps = whole * PEER_SHARE, num_steps(whole, STEPS_PER_MINUTE)
    tokens = round(minutes * TOKENS_PER_MINUTE)
    write = (PYTHON, "-m", "experiments.trainer_data", "{corpus}", "--out", "{folder}")
    choices = ("--size", "mini", "--seed", str(seed), "--tokens", str(tokens))
    data = Cell("rows for the peer", [(*write, *choices)], lambda folder: {}, seed, {"corpus": prepared}, minutes=0.5)
    every = max(5, round(minutes * PEER_STEPS_PER_MINUTE / EVALUATIONS))
    train = (PEERS, "-m", "experiments.peers.trainer", "{data}", "--out", "{folder}/result.json", "--seed", str(seed))
    return Cell(
        PEER,
        [(*train, "--minutes", str(minutes), "--steps", str(steps), "--eval-every", str(every))],
        lambda folder: json.loads((folder / "result.json").read_text("utf-8")),
        seed=seed,
        needs={"data": data},
        inputs={Path(file).name: ROOT / file for file in PEER_FILES},
        minutes=minutes * 1.1 + 0.5,
        resumes=False,
    )


def read_own(folder: Path) -> Result:
    return read_run(folder / "run")


def conclude(rows: Rows) -> list[str]:
    """Seed by seed, as they were given the same weights."""
    told = []
    for ours, peer in zip(rows.get(OURS, ()), rows.get(PEER, ()), strict=False):
        goal, limit = peer["figures"]["masked_lm"], peer["figures"]["minutes"]
        reached = first_time(ours["curves"]["masked_lm"], goal)
        began = f"The {PEER} gets to {goal:.3f} in {limit:.1f} minutes; bertie"
        if reached is None:
            told.append(f"{began} does not get there in {ours['figures']['minutes']:.1f}.")
        else:
            told.append(f"{began} is there after {reached:.1f}, {reached / limit:.2f} of the time.")
    return told


def first_time(curve: Sequence[Sequence[float]], goal: float) -> float | None:
    """When the curve falls to the goal, on a straight line between two measurements."""
    before: Sequence[float] | None = None
    for x, y in curve:
        if y <= goal:
            if before is None:
                return x
            return before[0] + (x - before[0]) * (before[1] - goal) / (before[1] - y)
        before = (x, y)
    return None


EXPERIMENT = Experiment(
    about="MINI on English Wikipedia, bertie for about 40 minutes, the transformers Trainer for 20",
    cells=cells,
    columns=(
        Column("held-out MLM loss", "masked_lm"),
        Column("accuracy", "masked_lm_accuracy", ".1%"),
        Column("minutes", "minutes", ".1f"),
        Column("steps", "steps", ",.0f"),
        Column("tokens", "tokens", ",.0f"),
        Column("tokens/s", "tokens_per_second", ",.0f"),
    ),
    charts=(
        Curves("masked_lm", "held-out MLM loss", "minutes"),
        Curves("masked_lm_accuracy", "held-out MLM accuracy", "minutes", percent=True),
    ),
    conclude=conclude,
)
