"""Speed of building a corpus: bertie beside `datasets.map`, interleaved in one run. Figures leave on stdout.

Run as `.venv/bin/python benchmarks/corpus.py`. README.md in this folder says what is measured and how to read it.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import SHARED, new_parser, positive, read_options, run_alone, say
from benchmarks.corpus_figures import (
    ALIKE,
    CHINESE,
    EVERYTHING,
    LEAN_PEER,
    MEGA,
    PEER,
    SENTENCES,
    Row,
    different_tokens,
    judge,
)
from benchmarks.corpus_text import Source, prepare
from benchmarks.corpus_turns import Turn, take_turn
from benchmarks.environment import peers_python
from benchmarks.record import Figure, doubt_of_spread, keep, new_entry
from bertie.data.manifest import Manifest
from bertie.errors import UserError
from bertie.machine import cpu_name, num_cores

ENGLISH, MANDARIN = "en_wiki.jsonl.gz", "zh_wiki.jsonl.gz"
UNCASED, HAN = "bert-base-uncased", "bert-base-chinese"
PACKAGES = ("bertie", "nanotoken", "tokenizers", "sentencex", "rjieba", "rensa", "pyarrow")
# No search for repeats, no sentences, no words of ideographs, no normalisation: `datasets.map` does none of it.
BARE = (
    *("--no-sentences", "--keep-duplicates", "--keep-near-duplicates", "--paragraphs", "off"),
    *("--unicode", "none", "--segmenter", "none"),
)
OFFLINE = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
PEER_BATCH, PEER_BLOCK = 1000, 128  # documents that its second `map` joins, and the block whose rest it drops


@dataclass(frozen=True)
class Entrant:
    data: str
    vocabulary: str
    flags: Sequence[str]
    is_peer: bool = False


Told = dict[str, Any]  # what a contender says of its turn: seconds, documents, tokens, and more


FIELD = {
    PEER: Entrant(ENGLISH, UNCASED, (), is_peer=True),
    ALIKE: Entrant(ENGLISH, UNCASED, BARE),
    LEAN_PEER: Entrant(ENGLISH, UNCASED, ("--ids-alone",), is_peer=True),
    SENTENCES: Entrant(ENGLISH, UNCASED, ("--keep-near-duplicates",)),
    EVERYTHING: Entrant(ENGLISH, UNCASED, ()),
    CHINESE: Entrant(MANDARIN, HAN, ("--keep-near-duplicates", "--segmenter", "jieba")),
}


def main(words: Sequence[str] | None = None) -> int:
    return run_alone(run, parse(words))


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, rounds=3)
    parser.add_argument("--processes", type=positive, default=2, help="of every contender (default 2)")
    parser.add_argument("--sample", type=positive, metavar="MB", help="take only so much of each text")
    parser.add_argument("--only", nargs="+", choices=list(FIELD), metavar="NAME", help=f"of {', '.join(FIELD)}")
    parser.add_argument("--data", type=Path, default=SHARED / "data", help=f"folder with {ENGLISH} and {MANDARIN}")
    parser.add_argument("--vocab", type=Path, default=SHARED / "vocab", help=f"folder with {UNCASED} and {HAN}")
    return read_options(parser, words, trial=("sample", "only"))


def run(options: argparse.Namespace, warning: str | None) -> int:
    entrants = {name: entrant for name, entrant in FIELD.items() if not options.only or name in options.only}
    for entrant in entrants.values():
        if not (options.vocab / entrant.vocabulary).is_dir():
            hint = "give its folder with --vocab or $BERTIE_SHARED"
            raise UserError("a vocabulary is missing", where=str(options.vocab / entrant.vocabulary), hint=hint)
    python = peers_python(options.peers_python) if any(one.is_peer for one in entrants.values()) else None
    limit = None if options.sample is None else int(options.sample * MEGA)
    with tempfile.TemporaryDirectory(prefix="bertie-benchmark-") as name:
        scratch = Path(name)
        sources: dict[str, Source] = {}
        for data in dict.fromkeys(entrant.data for entrant in entrants.values()):
            say(f"reading {data}")
            sources[data] = prepare(options.data / data, scratch, limit)

        def take(entrant: Entrant) -> tuple[Turn, Told]:
            folder = scratch / "out"
            source, vocabulary = sources[entrant.data].file, options.vocab / entrant.vocabulary
            if entrant.is_peer:
                command = peer_command(str(python), source, vocabulary, folder, options.processes)
            else:
                command = own_command(source, vocabulary, folder, options.processes)
            environment = {**OFFLINE, "HF_HOME": str(folder)}
            try:
                turn = take_turn([*command, *entrant.flags], folder, environment, scratch / "log")
                return turn, told(entrant, turn, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)  # nothing of a turn is there for the next

        taken = interleave(entrants, take, options.rounds)
    results = summarise(options, entrants, sources, taken) | {"warning": warning}
    print(describe(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if results["differs"]:
        say(f"error: {results['differs']}, the speeds mean nothing")
        return 1
    keep(options, new_entry("corpus.py", results, recorded(results), results["foreign_load"]))
    return 1 if options.strict and not all(bar["holds"] for bar in results["bars"]) else 0


def own_command(source: Path, vocabulary: Path, folder: Path, processes: int) -> list[str]:
    built = [sys.executable, "-m", "bertie.cli.app", "corpus", "build", str(source)]
    return [*built, "--tokenizer", str(vocabulary), "--out", str(folder), "--workers", str(processes), "--json"]


def peer_command(python: str, source: Path, vocabulary: Path, folder: Path, processes: int) -> list[str]:
    mapped = [python, "-m", "benchmarks.contenders.datasets_map", str(source)]
    return [*mapped, "--tokenizer", str(vocabulary), "--cache", str(folder), "--processes", str(processes)]


def told(entrant: Entrant, turn: Turn, folder: Path) -> Told:
    answer: Told = json.loads(turn.printed)
    if entrant.is_peer:
        return answer
    made = Manifest.read(folder)
    counts = {"documents": made.num_documents, "tokens": made.num_tokens, "words": made.num_words}
    return {"seconds": answer["seconds"], **counts, "sentences": made.num_sentences}


def interleave(
    entrants: Mapping[str, Entrant], take: Callable[[Entrant], tuple[Turn, Told]], num_rounds: int
) -> dict[str, list[tuple[Turn, Told]]]:
    """Every contender once a round; the order moves on by one each round, so that none always follows the same."""
    names = list(entrants)
    taken: dict[str, list[tuple[Turn, Told]]] = {name: [] for name in names}
    for number in range(num_rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(take(entrants[name]))
            say(f"round {number + 1}: {name}: {taken[name][-1][0].seconds:.2f} s")
    return taken


def summarise(
    options: argparse.Namespace,
    entrants: Mapping[str, Entrant],
    sources: Mapping[str, Source],
    taken: Mapping[str, Sequence[tuple[Turn, Told]]],
) -> dict[str, Any]:
    turns = {name: [turn for turn, _ in pairs] for name, pairs in taken.items()}
    rows = {
        name: Row.of(sources[entrants[name].data].num_bytes, turns[name], [answer["seconds"] for _, answer in pairs])
        for name, pairs in taken.items()
    }
    answers = {name: dict(pairs[0][1]) for name, pairs in taken.items()}  # the first of several that are the same
    versions = {name: answer.pop("versions", own_versions()) for name, answer in answers.items()}
    differs = ""
    if ALIKE in rows and PEER in rows:
        own, peer = answers[ALIKE]["tokens"], answers[PEER]["tokens"]
        num_batches = options.processes + sources[ENGLISH].num_documents // PEER_BATCH
        if different_tokens(own, peer, PEER_BLOCK * num_batches):
            differs = f"bertie counted {own:,} tokens and {PEER} {peer:,}"
    every = [turn for one in turns.values() for turn in one]
    foreign, spent = sum(turn.foreign or 0.0 for turn in every), sum(turn.seconds for turn in every)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_name(), "cores": num_cores(), "processes": options.processes},
        "rounds": options.rounds,
        "texts": {name: asdict(source) | {"file": str(source.file)} for name, source in sources.items()},
        "versions": versions,
        "rows": {name: answers[name] | asdict(row) | {"spread": row.spread} for name, row in rows.items()},
        "ratios": ratios(rows),
        "differs": differs,
        "foreign_load": foreign / (spent * num_cores()),
        "bars": [asdict(bar) | {"holds": bar.holds, "line": str(bar)} for bar in judge(rows)],
        "turns": {name: [asdict(turn) for turn in one] for name, one in turns.items()},
    }


def recorded(results: Mapping[str, Any]) -> list[Figure]:
    """The bars, then the speeds."""
    doubts = {name: doubt_of_spread(row["spread"]) for name, row in results["rows"].items()}
    doubt = next(filter(None, doubts.values()), "")
    bars = [
        Figure(
            bar["name"],
            bar["value"],
            bar["limit"],
            verdict="holds" if bar["holds"] else "BROKEN",
            at_most=bar["at_most"],
            doubt="" if bar["at_most"] else doubt,  # neither disk nor memory depends on who else is there
        )
        for bar in results["bars"]
    ]
    named = {bar.name for bar in bars}
    speeds = [Figure(f"MB/s of {name}", row["best"], doubt=doubts[name]) for name, row in results["rows"].items()]
    return [*bars, *(figure for figure in speeds if figure.name not in named)]


def ratios(rows: Mapping[str, Row]) -> list[str]:
    if ALIKE not in rows:
        return []
    own = rows[ALIKE]
    return [
        f"{own.best / rows[peer].best:.2f}x {peer}; {own.inside / rows[peer].inside:.2f}x without start and imports"
        for peer in (PEER, LEAN_PEER)
        if peer in rows
    ]


def own_versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def describe(results: Mapping[str, Any]) -> str:
    machine, heads = results["machine"], ("MB/s", "median", "spread", "inside", "CPU s", "GB", "disk", "left")
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['processes']} processes, {results['rounds']} rounds",
        *(
            f"{name}: {text['num_documents']:,} documents, {text['num_bytes'] / MEGA:.1f} MB of text in UTF-8"
            for name, text in results["texts"].items()
        ),
        "",
        f"{'':<25}" + "".join(f"{head:>8}" for head in heads) + f"{'tokens':>13}{'words':>13}",
    ]
    for name, row in results["rows"].items():
        memory = "?" if row["memory"] is None else f"{row['memory']:.2f}"
        words = f"{row['words']:,}" if "words" in row else "-"
        lines.append(
            f"{name:<25}{row['best']:>8.2f}{row['middle']:>8.2f}{row['spread']:>8.0%}{row['inside']:>8.2f}"
            f"{row['processor_seconds']:>8.1f}{memory:>8}{row['disk']:>8.2f}{row['disk_left']:>8.2f}"
            f"{row['tokens']:>13,}{words:>13}"
        )
    lines += [
        "",
        *results["ratios"],
        f"others used {results['foreign_load']:.1%} of the processor meanwhile",
        "",
        *(bar["line"] for bar in results["bars"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
