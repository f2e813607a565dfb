"""Speed of embedding real text: bertie beside its peers, interleaved in one run. Prints figures; `--json` keeps them.

Run as `.venv/bin/python benchmarks/embed.py`. README.md in this folder says what is measured and how to read it.
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

import numpy as np
import torch

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
from benchmarks.contenders.minilm import NAME, PRODUCTS, attention_operations, linear_operations
from benchmarks.environment import peers_python
from benchmarks.figures import (
    LOWEST_COSINE,
    OURS,
    REFERENCE,
    SAME_ENGINE,
    Peak,
    Speed,
    judge,
    lowest_cosine,
    paired_ratio,
)
from benchmarks.load import foreign_share
from benchmarks.record import Figure, doubt_of_spread, keep, new_entry
from benchmarks.texts import mixed_texts
from benchmarks.worker import Settings, Worker
from bertie.machine import cpu_name, num_cores

BATCH_SIZES = (8, 16, 32, 64)
BATCH_TOKENS = (1024, 2048, 4096)
PEAK = "peak"
TRIALS = 2  # runs of each setting before the rounds; the first of them also warms up


@dataclass(frozen=True)
class Entrant:
    """A contender's module, and what to try before the rounds."""

    module: str
    settings: Sequence[Settings]


def field(batch_sizes: Sequence[int], threads: int) -> dict[str, Entrant]:
    plain = [{"batch_size": size} for size in batch_sizes]
    streamed = [{**setting, "streams": streams} for streams in sorted({1, threads}) for setting in plain]
    return {
        REFERENCE: Entrant("sentence_transformers", plain),
        REFERENCE + SAME_ENGINE: Entrant("sentence_transformers", plain),
        "ONNX Runtime": Entrant("onnx_runtime", streamed),
        "OpenVINO": Entrant("openvino", streamed),
        OURS: Entrant("bertie", [{"batch_tokens": tokens} for tokens in BATCH_TOKENS]),
    }


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=5)
    parser.add_argument("--texts", type=positive, default=1200, help="how many texts (default 1200)")
    parser.add_argument("--threads", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument(
        "--batch-sizes", type=positive, nargs="+", default=BATCH_SIZES, help="that the peers try (default 8 16 32 64)"
    )
    parser.add_argument(
        "--data", type=Path, default=SHARED / "data", help="folder with stsb, sst2 and en_wiki.jsonl.gz"
    )
    return read_options(parser, words, trial=("texts", "batch_sizes"))


def run(options: argparse.Namespace, warning: str | None) -> int:
    texts = mixed_texts(options.data, options.texts)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bertie-benchmark-")))
        file = folder / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        entrants = field(options.batch_sizes, options.threads)
        places = places_of(entrants, peers_python(options.peers_python))
        workers = stack.enter_context(started(places, options.threads, folder))
        entrants = {name: entrant for name, entrant in entrants.items() if name in workers}
        chosen = {name: choose(workers[name], entrant, file) for name, entrant in entrants.items()}
        say("comparing vectors")
        vectors = {}
        for name, (settings, _) in chosen.items():
            workers[name].ask({"texts": str(file), "settings": settings, "save": str(folder / f"{name}.npy")})
            vectors[name] = np.load(folder / f"{name}.npy")
        turns = interleave(workers, {name: settings for name, (settings, _) in chosen.items()}, file, options.rounds)
        versions = {name: worker.versions for name, worker in workers.items()}
        engines = engines_of(workers)
    cosines = {name: lowest_cosine(found, vectors[REFERENCE]) for name, found in vectors.items()}
    results = summarise(options, turns, cosines)
    results |= {
        "settings": {name: settings for name, (settings, _) in chosen.items()},
        "tried": {name: tried for name, (_, tried) in chosen.items()},
        "versions": versions,
        "engines": engines,
        "warning": warning,
        "turns": turns,
    }
    print(describe(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    # A peer's second row may compute in 16 bits: its cosine is printed, no more.
    wrong = [name for name, cosine in cosines.items() if not cosine >= LOWEST_COSINE and not name.endswith(SAME_ENGINE)]
    if wrong:
        say(f"error: the vectors of {', '.join(wrong)} differ: cosine below {LOWEST_COSINE}, the speeds mean nothing")
        return 1
    keep(options, new_entry("embed.py", results, recorded(results), results["foreign_load"], engines))
    return 1 if options.strict and not all(bar["holds"] for bar in results["bars"]) else 0


def places_of(entrants: dict[str, Entrant], peers: Path) -> dict[str, Place]:
    """Each contender's module, and the Python that runs it."""
    own = Path(sys.executable)
    places = {name: Place(entrant.module, own if name == OURS else peers) for name, entrant in entrants.items()}
    return {**with_same_engine(REFERENCE, places), PEAK: Place("gemm", own)}


def choose(worker: Worker, entrant: Entrant, texts: Path) -> tuple[Settings, list[dict[str, Any]]]:
    """The fastest setting, and all that was tried. Fewer texts would lie farther apart in length and be padded more."""
    tried = []
    for settings in entrant.settings:
        answers = [worker.ask({"texts": str(texts), "settings": settings}) for _ in range(TRIALS)]
        speed = answers[0]["tokens"] / min(answer["seconds"] for answer in answers)
        tried.append({"settings": settings, "tokens_per_second": speed})
        say(f"{worker.name}: {in_words(settings)}: {speed:,.0f} tokens/s")
    best = max(range(len(tried)), key=lambda number: tried[number]["tokens_per_second"])
    return entrant.settings[best], tried


def interleave(
    workers: dict[str, Worker], settings: dict[str, Settings], texts: Path, num_rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """Every contender once a round; the order moves on by one each round, so that none always follows the same."""
    names = [*settings, PEAK]
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number in range(num_rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            asked = {"products": PRODUCTS} if name == PEAK else {"texts": str(texts), "settings": settings[name]}
            turns[name].append(workers[name].ask(asked))
        told = ", ".join(f"{name} {turns[name][-1]['seconds']:.2f} s" for name in settings)
        say(f"round {number + 1}: {told}")
    return turns


def summarise(
    options: argparse.Namespace, turns: dict[str, list[dict[str, Any]]], cosines: dict[str, float]
) -> dict[str, Any]:
    counts = {name: (turns[name][0]["tokens"], turns[name][0]["squares"]) for name in cosines}
    if len(set(counts.values())) > 1:
        raise RuntimeError(f"the contenders counted different tokens, so their speeds cannot be compared: {counts}")
    tokens, squares = counts[OURS]
    seconds = {name: [turn["seconds"] for turn in turns[name]] for name in cosines}
    speeds = {name: Speed.of(tokens, seconds[name]) for name in cosines}
    peak = Peak.of(turns[PEAK])
    linear = linear_operations(tokens)
    achieved = {"linear": linear, "all": linear + attention_operations(squares)}
    shares = {kind: operations / min(seconds[OURS]) / peak.flops for kind, operations in achieved.items()}
    cores = num_cores()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_name(), "cores": cores, "threads": options.threads, "torch": torch.__version__},
        "model": NAME,
        "texts": options.texts,
        "tokens": tokens,
        "rounds": options.rounds,
        "speeds": {name: speed.facts() for name, speed in speeds.items()},
        "cosines": cosines,
        "paired_ratios": {name: paired_ratio(seconds[OURS], seconds[name]) for name in cosines if name != OURS},
        "peak": peak.facts(),
        "peak_line": str(peak),
        "share_of_peak": shares,
        "foreign_load": foreign_share((turn for name in cosines for turn in turns[name]), cores),
        "bars": [bar.facts() for bar in judge(speeds, shares["all"], peak.enough(shares["all"]))],
    }


def recorded(results: dict[str, Any]) -> list[Figure]:
    """The bars, then the speeds. What the best other was called may change from run to run: the bar has one name."""
    doubt = doubt_of_spread(*(speed["spread"] for speed in results["speeds"].values()))
    bars = [Figure.of_bar({**bar, "name": bar["name"].partition(" (")[0]}, doubt) for bar in results["bars"]]
    speeds = [
        Figure(f"tokens/s of {name}", speed["best"], doubt=doubt_of_spread(speed["spread"]))
        for name, speed in results["speeds"].items()
    ]
    return [*bars, *speeds, Figure("GFLOP/s of the peak", results["peak"]["flops"] / 1e9)]


def describe(results: dict[str, Any]) -> str:
    machine, shares = results["machine"], results["share_of_peak"]
    lines = [
        f"{results['model']}, float32, {machine['threads']} threads, {machine['cpu']}, {machine['cores']} cores",
        f"{results['texts']:,} texts, {results['tokens']:,} tokens, tokenisation included, {results['rounds']} rounds",
        "",
        f"{'':<36}{'tokens/s':>9}{'median':>9}{'spread':>8}  {'lowest cosine':<14} setting",
    ]
    for name, speed in results["speeds"].items():
        lines.append(
            f"{name:<36}{speed['best']:>9,.0f}{speed['median']:>9,.0f}{speed['spread']:>8.0%}"
            f"  {results['cosines'][name]:<14.7f} {in_words(results['settings'][name])}"
        )
    lines += [
        "",
        results["peak_line"],
        f"bertie reaches {shares['all']:.2f} of it, {shares['linear']:.2f} counting linear layers alone",
        "middle of the rounds' own ratios: "
        + ", ".join(f"{ratio:.2f}x {name}" for name, ratio in results["paired_ratios"].items()),
        *(f"products of {name}: {engine}" for name, engine in results["engines"].items()),
        f"others used {results['foreign_load']:.1%} of the processor meanwhile",
        "",
        *(bar["line"] for bar in results["bars"]),
    ]
    return "\n".join(lines)


def in_words(settings: Settings) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())


if __name__ == "__main__":
    sys.exit(main())
