"""Speed of pre-training on real text: bertie beside the `transformers` Trainer, interleaved in one run.

Run as `.venv/bin/python benchmarks/pretrain.py`. README.md in this folder says what is measured and how to read it.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from benchmarks.command import SHARED, new_parser, positive, run_alone, say, started
from benchmarks.contenders.instances import Instances
from benchmarks.environment import peers_python
from benchmarks.figures import OURS, Bar, Speed, paired_ratio
from benchmarks.pretrain_instances import make_instances
from benchmarks.worker import Settings, Worker
from bertie.errors import UserError
from bertie.machine import cpu_name, num_cores
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import bert
from bertie.text.tokenizer import Tokenizer, load_tokenizer

PEER, PEAK = "transformers Trainer", "peak"
LENGTH, NUM_ROWS = 128, 640
CHECKED_ROWS, CLOSE = 8, 1e-4  # both must give the same loss for the same weights
MOST_ROWS = 32  # of a step
PEER_SETTINGS = [{"rows": 8}, {"rows": 16}, {"rows": MOST_ROWS}]
OUR_SETTINGS = [{"rows": MOST_ROWS, "micro_tokens": tokens} for tokens in (1024, 2048, 4096)]

Turns = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Row:
    """A line of the table: a model, and how many times 32 rows a turn has."""

    size: str
    steps: int
    attention_dropout: float = 0.0
    must: float | None = None
    goal: float | None = None
    goal_share: float | None = None


ROWS = {
    "mini": Row("mini", 8, must=3.0, goal=4.0, goal_share=0.60),
    "mini, attention dropout 0.1": Row("mini", 8, attention_dropout=0.1),
    "tiny": Row("tiny", 24),
    "small": Row("small", 4),
    "base": Row("base", 1),
}


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=4)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), help="rows of the table (default: all)")
    parser.add_argument("--threads", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder with en_wiki.jsonl.gz")
    parser.add_argument("--vocab", type=Path, default=SHARED / "vocab/bert-base-uncased", help="a tokenizer's folder")
    return parser.parse_args(words)


def run(options: argparse.Namespace, warning: str | None) -> int:
    tokenizer = load_tokenizer(options.vocab)
    if tokenizer is None:
        raise UserError("there is no tokenizer", where=str(options.vocab), hint="give its folder with --vocab")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bertie-benchmark-")))
        instances = make_instances(options.data, folder, tokenizer, NUM_ROWS, LENGTH)
        instances.write(folder / "instances.npz")
        own, peer = Path(sys.executable), peers_python(options.peers_python)
        modules = {PEER: ("pretrain_trainer", peer), OURS: ("pretrain_bertie", own), PEAK: ("gemm", own)}
        workers = stack.enter_context(started(modules, options.threads, folder))
        results = {
            name: compare(name, ROWS[name], workers, tokenizer, instances, folder, options.rounds)
            for name in options.only
        }
        versions = {name: worker.versions for name, worker in workers.items()}
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_name(), "cores": num_cores(), "threads": options.threads, "torch": torch.__version__},
        "instances": {"rows": NUM_ROWS, "tokens": len(instances.tokens), "predicted": len(instances.targets)},
        "rounds": options.rounds,
        "versions": versions,
        "warning": warning,
        "rows": results,
    }
    print(describe(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    broken = [bar for result in results.values() for bar in result["bars"] if not bar["holds"]]
    return 1 if options.strict and broken else 0


def recipe_of(row: Row, vocab_size: int) -> Recipe:
    recipe = bert(SIZES[row.size], vocab_size)
    block = recipe.encoder.stack.block
    scorer = block.mixer.scorer.replace(dropout=row.attention_dropout)
    stack = recipe.encoder.stack.replace(block=block.replace(mixer=block.mixer.replace(scorer=scorer)))
    return recipe.replace(encoder=recipe.encoder.replace(stack=stack))


def compare(
    name: str,
    row: Row,
    workers: dict[str, Worker],
    tokenizer: Tokenizer,
    instances: Instances,
    folder: Path,
    num_rounds: int,
) -> dict[str, Any]:
    recipe = recipe_of(row, tokenizer.size)
    model = folder / name.replace(" ", "-")
    Pretrained(Model.new(recipe, seed=0), tokenizer).save(model)
    request = {"model": str(model), "instances": str(folder / "instances.npz")}
    losses = {other: workers[other].ask({**request, "check": CHECKED_ROWS})["loss"] for other in (PEER, OURS)}
    if abs(losses[PEER] - losses[OURS]) > CLOSE:
        raise UserError(f"{name}: the same weights give other losses, so speeds mean nothing: {losses}")
    settings = {PEER: PEER_SETTINGS, OURS: OUR_SETTINGS}
    chosen = {other: choose(workers[other], tried, row.steps, request) for other, tried in settings.items()}
    products = shapes(recipe)
    turns: Turns = {other: [] for other in workers}
    for number in range(num_rounds):
        for other in (PEER, OURS) if number % 2 else (OURS, PEER):
            turns[other].append(workers[other].ask({**request, **turn_of(row.steps, chosen[other])}))
        turns[PEAK].append(workers[PEAK].ask({"products": products}))
        told = ", ".join(f"{other} {speed_of(turns[other][-1]):,.0f}" for other in chosen)
        say(f"{name}: round {number + 1}: {told} tokens/s")
    return figures(row, recipe, instances, turns, chosen, losses)


def turn_of(num_steps: int, settings: Settings) -> dict[str, Any]:
    """As many rows for everybody, in steps of any size."""
    return {"settings": settings, "steps": num_steps * MOST_ROWS // settings["rows"]}


def choose(worker: Worker, settings: list[Settings], num_steps: int, request: dict[str, Any]) -> Settings:
    """The fastest setting, by one turn each."""
    speeds = []
    for setting in settings:
        speeds.append(speed_of(worker.ask({**request, **turn_of(max(1, num_steps // 2), setting)})))
        say(f"{worker.name}: {in_words(setting)}: {speeds[-1]:,.0f} tokens/s")
    return settings[speeds.index(max(speeds))]


def speed_of(turn: dict[str, Any]) -> float:
    return float(turn["tokens"] / turn["seconds"])


def shapes(recipe: Recipe) -> list[tuple[int, int]]:
    """Inputs and outputs of a layer's matrix products."""
    width, inner = recipe.encoder.width, inner_width(recipe)
    return [(width, 3 * width), (width, width), (width, inner), (inner, width)]


def inner_width(recipe: Recipe) -> int:
    feed_forward = recipe.encoder.stack.block.feed_forward
    assert feed_forward is not None
    return feed_forward.inner


def operations_of(recipe: Recipe, instances: Instances) -> float:
    """What training on all instances needs: products of the layers, of attention, of the vocabulary where something
    is predicted, and of the pooler. The gradients of a product are two more of the same size."""
    width, depth = recipe.encoder.width, recipe.encoder.stack.depth
    num_tokens, num_rows, num_predicted = len(instances.tokens), len(instances.lengths), len(instances.targets)
    layers = depth * num_tokens * sum(inputs * outputs for inputs, outputs in shapes(recipe))
    attention = depth * 2 * width * float((instances.lengths**2).sum())
    head = num_predicted * width * (recipe.vocab_size + width)
    pooler = num_rows * width * (width + 2)
    return 3 * 2 * (layers + attention + head + pooler)


def figures(
    row: Row,
    recipe: Recipe,
    instances: Instances,
    turns: Turns,
    settings: dict[str, Settings],
    losses: dict[str, float],
) -> dict[str, Any]:
    speeds = {}
    for name in (PEER, OURS):
        tokens = turns[name][0]["tokens"]
        speeds[name] = Speed.of(tokens, [turn["seconds"] for turn in turns[name]])
    per_token = operations_of(recipe, instances) / len(instances.tokens)
    peak = max(turns[PEAK], key=lambda turn: float(turn["flops"]))
    share = speeds[OURS].best * per_token / peak["flops"]
    rates = {name: [1 / speed_of(turn) for turn in turns[name]] for name in (PEER, OURS)}
    bars = []
    if row.goal is not None:
        bars.append(Bar(f"{row.size}: times the Trainer", speeds[OURS].best / speeds[PEER].best, row.must, row.goal))
    if row.goal_share is not None:
        bars.append(Bar(f"{row.size}: share of the float32 peak", share, None, row.goal_share))
    return {
        "speeds": {
            name: {"best": speed.best, "median": speed.middle, "spread": speed.spread} for name, speed in speeds.items()
        },
        "ratio": speeds[OURS].best / speeds[PEER].best,
        "paired_ratio": paired_ratio(rates[OURS], rates[PEER]),
        "flops_per_token": per_token,
        "peak": {"flops": peak["flops"], "product": peak["product"]},
        "share_of_peak": share,
        "settings": settings,
        "losses": losses,
        "foreign": sum(turn.get("foreign", 0.0) for name in speeds for turn in turns[name]),
        "bars": [{"line": str(bar), "holds": bar.holds, "reached": bar.reached, "value": bar.value} for bar in bars],
        "turns": turns,
    }


def describe(report: dict[str, Any]) -> str:
    machine, facts = report["machine"], report["instances"]
    lines = [
        f"MLM + NSP, float32, rows of up to {LENGTH} tokens, {machine['threads']} threads, {machine['cpu']}",
        ", ".join(f"{count:,} {name}" for name, count in facts.items()) + f", {report['rounds']} rounds",
        "",
        f"{'':<29}{'Trainer':>9}{'bertie':>9}{'times':>7}{'paired':>8}{'of peak':>9}  {'spread':<10} setting",
    ]
    for name, row in report["rows"].items():
        peer, own = row["speeds"][PEER], row["speeds"][OURS]
        spread = f"{peer['spread']:.0%}, {own['spread']:.0%}"
        settings = "; ".join(in_words(row["settings"][other]) for other in (PEER, OURS))
        lines.append(
            f"{name:<29}{peer['best']:>9,.0f}{own['best']:>9,.0f}{row['ratio']:>7.2f}{row['paired_ratio']:>8.2f}"
            f"{row['share_of_peak']:>9.2f}  {spread:<10} {settings}"
        )
    lines += ["", *(bar["line"] for row in report["rows"].values() for bar in row["bars"])]
    return "\n".join(lines)


def in_words(settings: Settings) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())


if __name__ == "__main__":
    sys.exit(main())
