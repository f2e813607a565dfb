"""Speed of pre-training on real text: bertie beside the `transformers` Trainer, interleaved in one run.

Run as `.venv/bin/python benchmarks/pretrain.py`. README.md in this folder says what is measured and how to read it.
"""

import argparse
import contextlib
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import nn

from benchmarks.command import (
    SHARED,
    Place,
    engines_of,
    new_parser,
    positive,
    read_options,
    run_alone,
    say,
    started,
    with_same_engine,
)
from benchmarks.contenders.instances import Instance, write_instances
from benchmarks.environment import peers_python
from benchmarks.figures import OURS, SAME_ENGINE, Bar, Peak, Speed, paired_ratio
from benchmarks.load import foreign_share
from benchmarks.pretrain_instances import make_corpus, make_instances
from benchmarks.record import Figure, doubt_of_spread, keep, new_entry
from benchmarks.worker import Settings, Worker
from bertie.errors import UserError
from bertie.inspection.costs import forward_flops
from bertie.machine import cpu_name, num_cores
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import RECIPES
from bertie.nn.encoder import EncoderSpec
from bertie.objectives.replaced_tokens import ReplacedTokens
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

PEER, PEAK = "transformers Trainer", "peak"
LENGTH, NUM_ROWS = 128, 640
CHECKED_ROWS, CLOSE = 8, 1e-5  # both must give the same loss for the same weights, up to this share of it
MOST_ROWS = 32  # of a step
PEER_SETTINGS = [{"rows": 8}, {"rows": 16}, {"rows": MOST_ROWS}]
OUR_SETTINGS = [{"rows": MOST_ROWS, "micro_tokens": tokens} for tokens in (1024, 2048, 4096)]

Turns = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Row:
    """A line of the table: a model, how many times 32 rows a turn has, and what is expected."""

    size: str
    steps: int
    family: str = "bert"
    attention_dropout: float = 0.0
    must: float | None = None
    goal: float | None = None
    must_share: float | None = None  # of the peak
    goal_share: float | None = None
    peer: Mapping[str, Any] = field(default_factory=dict)  # what the peer's model is opened with


ROWS = {
    "mini": Row("mini", 8, must=4.5, goal=6.0, must_share=0.50, goal_share=0.65),
    "mini, attention dropout 0.1": Row("mini", 8, attention_dropout=0.1),
    "tiny": Row("tiny", 24),
    "small": Row("small", 4, goal=4.0),
    "base": Row("base", 1, must=1.8, goal=2.5),
    "roberta": Row("mini", 8, "roberta", must=2.0, goal=3.0),
    "albert": Row("mini", 8, "albert", must=2.0, goal=3.0),
    "electra": Row("mini", 8, "electra", must=2.0, goal=3.0),
    "modernbert": Row("mini", 8, "modernbert", must=2.0, goal=3.0),
    "modernbert, sparse prediction": Row("mini", 8, "modernbert", peer={"sparse_prediction": True}),
}


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=4)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), help="rows of the table (default: all)")
    parser.add_argument("--threads", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder with en_wiki.jsonl.gz")
    parser.add_argument("--vocab", type=Path, default=SHARED / "vocab/bert-base-uncased", help="a tokenizer's folder")
    return read_options(parser, words, trial=("only",))


def run(options: argparse.Namespace, warning: str | None) -> int:
    tokenizer = load_tokenizer(options.vocab)
    if tokenizer is None:
        raise UserError("there is no tokenizer", where=str(options.vocab), hint="give its folder with --vocab")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bertie-benchmark-")))
        corpus = make_corpus(options.data, folder, tokenizer)
        instances: dict[str, list[Instance]] = {}
        for row in (ROWS[name] for name in options.only):
            if row.family not in instances:
                recipe = recipe_of(row, tokenizer.size)
                instances[row.family] = make_instances(recipe, corpus, tokenizer, NUM_ROWS, LENGTH)
                write_instances(folder / f"{row.family}.npz", instances[row.family])
        own, peer = Path(sys.executable), peers_python(options.peers_python)
        places = with_same_engine(PEER, {PEER: Place("pretrain_trainer", peer), OURS: Place("pretrain_bertie", own)})
        workers = stack.enter_context(started({**places, PEAK: Place("gemm", own)}, options.threads, folder))
        results = {
            name: compare(name, workers, tokenizer, instances[ROWS[name].family], folder, options.rounds)
            for name in options.only
        }
        versions = {name: worker.versions for name, worker in workers.items()}
        engines = engines_of(workers)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_name(), "cores": num_cores(), "threads": options.threads, "torch": torch.__version__},
        "instances": {family: counts(rows) for family, rows in instances.items()},
        "rounds": options.rounds,
        "versions": versions,
        "engines": engines,
        "warning": warning,
        "rows": results,
    }
    every = [turn for result in results.values() for turns in result["turns"].values() for turn in turns]
    report["foreign_load"] = foreign_share(every, num_cores())
    print(describe(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    keep(options, new_entry("pretrain.py", report, recorded(results), report["foreign_load"], engines))
    broken = [bar for result in results.values() for bar in result["bars"] if not bar["holds"]]
    return 1 if options.strict and broken else 0


def recipe_of(row: Row, vocab_size: int) -> Recipe:
    """The family's own, but for dropout on attention."""

    def dropping(encoder: EncoderSpec) -> EncoderSpec:
        return encoder.changed({"stack.block.mixer.scorer.dropout": row.attention_dropout})

    recipe = RECIPES[row.family](SIZES[row.size], vocab_size)
    objectives = [
        one.replace(generator=dropping(one.generator)) if isinstance(one, ReplacedTokens) and one.generator else one
        for one in recipe.objectives
    ]
    return recipe.replace(encoder=dropping(recipe.encoder), objectives=tuple(objectives))


def compare(
    name: str,
    workers: dict[str, Worker],
    tokenizer: Tokenizer,
    instances: Sequence[Instance],
    folder: Path,
    num_rounds: int,
) -> dict[str, Any]:
    row = ROWS[name]
    model = Model.new(recipe_of(row, tokenizer.size), seed=0)
    saved = folder / name.replace(", ", "-").replace(" ", "-")
    Pretrained(model, tokenizer).save(saved)
    request = {"model": str(saved), "options": row.peer, "instances": str(folder / f"{row.family}.npz")}
    losses = {other: workers[other].ask({**request, "check": CHECKED_ROWS})["loss"] for other in (PEER, OURS)}
    if not math.isclose(*losses.values(), rel_tol=CLOSE):
        raise UserError(f"{name}: the same weights give other losses, so speeds mean nothing: {losses}")
    settings = {other: OUR_SETTINGS if other == OURS else PEER_SETTINGS for other in workers if other != PEAK}
    chosen = {other: choose(workers[other], tried, row.steps, request) for other, tried in settings.items()}
    products = shapes(model)
    turns: Turns = {other: [] for other in workers}
    for number in range(num_rounds):
        for other in chosen if number % 2 else reversed(chosen):
            turns[other].append(workers[other].ask({**request, **turn_of(row.steps, chosen[other])}))
        turns[PEAK].append(workers[PEAK].ask({"products": products}))
        told = ", ".join(f"{other} {speed_of(turns[other][-1]):,.0f}" for other in chosen)
        say(f"{name}: round {number + 1}: {told} tokens/s")
    return figures(name, operations_of(model, instances), turns, chosen, losses)


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


def shapes(model: Model) -> list[tuple[int, int]]:
    """Inputs and outputs of the layers' matrix products."""
    parts = [part for part in model.encoder.stack.modules() if isinstance(part, nn.Linear)]
    return sorted({(part.in_features, part.out_features) for part in parts})


def counts(instances: Sequence[Instance]) -> dict[str, int]:
    tokens, predicted = (sum(len(row[name]) for row in instances) for name in ("tokens", "masked"))
    return {"rows": len(instances), "tokens": tokens, "predicted": predicted}


def operations_of(model: Model, instances: Sequence[Instance]) -> float:
    """What training needs for a token, on average over all instances."""
    counted = counts(instances)
    sizes = [len(row["tokens"]) for row in instances]
    return forward_flops(model).training(sizes, counted["predicted"]) / counted["tokens"]


def figures(
    name: str, per_token: float, turns: Turns, settings: dict[str, Settings], losses: dict[str, float]
) -> dict[str, Any]:
    row = ROWS[name]
    speeds = {
        other: Speed.of(turns[other][0]["tokens"], [turn["seconds"] for turn in turns[other]])
        for other in turns
        if other != PEAK
    }
    peak = Peak.of(turns[PEAK])
    share = speeds[OURS].best * per_token / peak.flops
    rates = {other: [1 / speed_of(turn) for turn in turns[other]] for other in (PEER, OURS)}
    bars = []
    if row.goal is not None:
        ratio, enough = speeds[OURS].best / speeds[PEER].best, peak.enough(share)
        bars.append(Bar(f"{name}: times the Trainer", ratio, row.must, row.goal, enough))
    if row.goal_share is not None:
        bars.append(Bar(f"{name}: share of the float32 peak", share, row.must_share, row.goal_share))
    return {
        "speeds": {other: speed.facts() for other, speed in speeds.items()},
        "ratio": speeds[OURS].best / speeds[PEER].best,
        "paired_ratio": paired_ratio(rates[OURS], rates[PEER]),
        "flops_per_token": per_token,
        "peak": peak.facts(),
        "share_of_peak": share,
        "settings": settings,
        "losses": losses,
        "foreign": sum(turn.get("foreign", 0.0) for other in speeds for turn in turns[other]),
        "bars": [bar.facts() for bar in bars],
        "turns": turns,
    }


def recorded(rows: Mapping[str, Mapping[str, Any]]) -> list[Figure]:
    """The bars of each row, and what has none, under the same names."""
    found = []
    for name, row in rows.items():
        doubt = doubt_of_spread(*(row["speeds"][other]["spread"] for other in (PEER, OURS)))
        bars = {bar["name"]: Figure.of_bar(bar, doubt) for bar in row["bars"]}
        plain = {"times the Trainer": row["ratio"], "share of the float32 peak": row["share_of_peak"]}
        for what, value in plain.items():
            found.append(bars.get(f"{name}: {what}") or Figure(f"{name}: {what}", value, doubt=doubt))
        found += [
            Figure(f"{name}: tokens/s of {other}", speed["best"], doubt=doubt_of_spread(speed["spread"]))
            for other, speed in row["speeds"].items()
        ]
    return found


def describe(report: dict[str, Any]) -> str:
    machine = report["machine"]
    lines = [
        f"pre-training, float32, rows of up to {LENGTH} tokens, {machine['threads']} threads, {machine['cpu']}, "
        f"{report['rounds']} rounds",
        *(
            f"{family}: " + ", ".join(f"{count:,} {name}" for name, count in facts.items())
            for family, facts in report["instances"].items()
        ),
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
        if PEER + SAME_ENGINE in row["speeds"]:
            second = row["speeds"][PEER + SAME_ENGINE]
            ratio, what = own["best"] / second["best"], report["engines"][PEER + SAME_ENGINE]
            lines.append(f"{'  the Trainer with ' + what:<29}{second['best']:>9,.0f}{'':>9}{ratio:>7.2f}")
    lines += [
        "",
        *(f"products of {name}: {engine}" for name, engine in report["engines"].items()),
        f"others used {report['foreign_load']:.1%} of the processor meanwhile",
        "",
        *(bar["line"] for row in report["rows"].values() for bar in row["bars"]),
    ]
    return "\n".join(lines)


def in_words(settings: Settings) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())


if __name__ == "__main__":
    sys.exit(main())
