"""The results of all runs: the figures of a run enter, an entry in RESULTS.md leaves, under the kind of machine.

The file is for people. Every entry ends with a comment that holds the same figures as JSON, which `results.py` reads.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT
from bertie.disk import write_file
from bertie.machine import INSTRUCTION_SETS, cpu_flags, cpu_name, num_cores

RESULTS = Path(__file__).with_name("RESULTS.md")
MOST_FOREIGN, MOST_SPREAD = 0.05, 0.10  # more of either, and a figure decides nothing
HEADER = """# Results

What the benchmarks measured, by kind of machine, the newest run last. `make bench-results` shows the latest figures of
all machines side by side, and what became slower. Figures of a machine that was not quiet are marked: they decide
nothing.
"""
BEGIN, END = "<!-- ", " -->"
# The most telling instruction set first: flags of /proc/cpuinfo, and what they are called.
LEVELS = (
    *(("amx_tile", "AMX"), ("avx512_bf16", "AVX-512 with bfloat16"), ("avx512_vnni", "AVX-512 with VNNI")),
    *(("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sve2", "SVE2"), ("sve", "SVE"), ("asimd", "NEON")),
)


@dataclass(frozen=True)
class Kind:
    """What makes figures comparable: the same on another machine of the same kind."""

    cpu: str
    instruction_sets: tuple[str, ...]
    cores: int

    @classmethod
    def here(cls) -> "Kind":
        flags = cpu_flags()
        return cls(cpu_name(), tuple(name for name in INSTRUCTION_SETS if name in flags), num_cores())

    @property
    def level(self) -> str:
        return next((word for flag, word in LEVELS if flag in self.instruction_sets), "unknown instructions")

    def __str__(self) -> str:
        return f"{self.cpu}, {self.level}, {self.cores} core{'' if self.cores == 1 else 's'}"


@dataclass(frozen=True)
class Figure:
    """One number. `doubt` says why it decides nothing, where that is so."""

    name: str
    value: float
    must: float | None = None
    goal: float | None = None
    verdict: str = ""  # of the bar
    at_most: bool = False  # less is better
    doubt: str = ""

    @property
    def is_broken(self) -> bool:
        return self.verdict == "BROKEN"

    @classmethod
    def of_bar(cls, bar: Mapping[str, Any], doubt: str = "") -> "Figure":
        verdict = bar["verdict"] if bar["must"] is not None else ""
        return cls(bar["name"], bar["value"], bar["must"], bar["goal"], verdict, doubt=doubt)


@dataclass(frozen=True)
class Entry:
    """One run of one benchmark."""

    benchmark: str
    kind: Kind
    date: str
    threads: int
    rounds: int
    versions: Mapping[str, str]
    figures: Sequence[Figure]
    engines: Mapping[str, str]  # of the contenders that tell theirs
    foreign: float  # the share of the processor that others used
    doubts: Sequence[str] = field(default_factory=list)  # why nothing of it decides anything

    def doubt_of(self, figure: Figure) -> str:
        return "; ".join([*self.doubts, *([figure.doubt] if figure.doubt else [])])

    def to_json(self) -> str:
        # A comment must not contain its own end.
        return json.dumps(asdict(self), separators=(",", ":")).replace(">", "\\u003e")

    @classmethod
    def from_json(cls, line: str) -> "Entry":
        facts = json.loads(line)
        kind = {**facts["kind"], "instruction_sets": tuple(facts["kind"]["instruction_sets"])}
        figures = [Figure(**figure) for figure in facts["figures"]]
        return cls(**{**facts, "kind": Kind(**kind), "figures": figures})


def new_entry(
    benchmark: str,
    report: Mapping[str, Any],
    figures: Sequence[Figure],
    foreign: float,
    engines: Mapping[str, str] | None = None,
) -> Entry:
    """From a benchmark's own report: its date, machine, rounds and versions. Doubted as a whole where others used the
    processor."""
    machine = report["machine"]
    doubts = [f"others used {foreign:.0%} of the processor"] if foreign > MOST_FOREIGN else []
    return Entry(
        benchmark=benchmark,
        kind=Kind.here(),
        date=report["date"],
        threads=machine.get("threads", machine.get("processes", 1)),
        rounds=report["rounds"],
        versions=all_versions(report["versions"].values()),
        figures=list(figures),
        engines=dict(engines or {}),
        foreign=foreign,
        doubts=doubts,
    )


def doubt_of_spread(*spreads: float) -> str:
    widest = max(spreads, default=0.0)
    return f"rounds differ by {widest:.0%}" if widest > MOST_SPREAD else ""


def all_versions(told: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Of all contenders in one; a package of which they have several versions has them all. The commit is beside
    bertie's."""
    found: dict[str, list[str]] = {}
    for versions in told:
        for name, version in versions.items():
            if version not in found.setdefault(name, []):
                found[name].append(version)
    joined = {name: " and ".join(versions) for name, versions in found.items()}
    if "bertie" in joined and (commit := current_commit()):
        joined["bertie"] += f" ({commit})"
    return joined


def current_commit() -> str:
    """Empty outside of a checkout; with a plus where files differ from it."""
    try:
        words = ("git", "describe", "--always", "--abbrev=9", "--dirty=+", "--exclude=*")
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def keep(options: argparse.Namespace, entry: Entry) -> None:
    """Appends it, unless it is a trial or shall not be kept. A trial that is kept all the same decides nothing, but
    that some rows alone were measured takes nothing from them."""
    if options.record is False:
        return
    if options.trial and options.record is None:
        print(f"not recorded, because of {' and '.join(options.trial)}: --record does it", file=sys.stderr)
        return
    less = [flag for flag in options.trial if flag != "--only"]
    if less:
        entry = replace(entry, doubts=[f"a trial with {' and '.join(less)}", *entry.doubts])
    append(options.results, entry)
    print(f"recorded in {options.results}", file=sys.stderr)


def append(file: Path, entry: Entry) -> None:
    """As the last of its kind of machine."""
    text = file.read_text(encoding="utf-8") if file.exists() else HEADER
    heading = f"## {entry.kind}"
    before, found, rest = f"\n{text}".partition(f"\n{heading}\n")
    if not found:
        sets = ", ".join(entry.kind.instruction_sets) or "unknown"
        section, after = f"Instruction sets: {sets}.\n", ""
    else:
        section, next_heading, others = rest.partition("\n## ")
        after = next_heading + others
    parts = [before.strip("\n"), heading, section.strip("\n"), in_words(entry)]
    written = "\n\n".join(parts) + "\n" + (f"\n{after.strip()}\n" if after else "")
    write_file(file, written.encode())


def in_words(entry: Entry) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in entry.versions.items())
    engines = "".join(f"; products of {name} by {engine}" for name, engine in entry.engines.items())
    facts = (
        f"{entry.threads} threads, {entry.rounds} rounds{engines}; others used {entry.foreign:.1%} of the processor."
    )
    lines = [f"### {entry.benchmark}, {entry.date[:16].replace('T', ' ')} UTC", "", f"{versions}.", facts]
    if entry.doubts:
        lines.append(f"**Decides nothing**: {'; '.join(entry.doubts)}.")
    lines += ["", "| figure | value | must | goal | |", "|---|---:|---:|---:|---|"]
    for figure in entry.figures:
        remarks = [figure.verdict, f"decides nothing: {figure.doubt}" if figure.doubt else ""]
        limits = [in_limit(limit, figure.at_most) for limit in (figure.must, figure.goal)]
        cells = [figure.name, in_figures(figure.value), *limits]
        lines.append(f"| {' | '.join(cells)} | {'; '.join(filter(None, remarks))} |")
    return "\n".join([*lines, "", f"{BEGIN}{entry.to_json()}{END}"])


def in_figures(value: float | None) -> str:
    """Three digits or more: 0.812, 4.51, 12,345."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def in_limit(limit: float | None, at_most: bool) -> str:
    return "at most " * (at_most and limit is not None) + in_figures(limit)


def read_entries(file: Path) -> list[Entry]:
    """In the order of the file: the oldest of each kind of machine first."""
    lines = file.read_text(encoding="utf-8").splitlines()
    inside = [line for line in lines if line.startswith(BEGIN + "{") and line.endswith(END)]
    return [Entry.from_json(line.removeprefix(BEGIN).removesuffix(END)) for line in inside]
