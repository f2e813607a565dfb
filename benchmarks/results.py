"""The latest figures of every kind of machine side by side, their bars, and what became slower. Reads RESULTS.md.

Run as `.venv/bin/python benchmarks/results.py`, or `make bench-results`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import RESULTS, Entry, Figure, Kind, in_figures, in_limit, read_entries

LARGEST_LOSS = 0.10  # of an earlier figure
BROKEN, DOUBTED = "!", "~"

Row = tuple[str, str, int]  # benchmark, figure, threads
Series = dict[tuple[Row, Kind], list["Measured"]]


@dataclass(frozen=True)
class Measured:
    entry: Entry
    figure: Figure

    @property
    def decides(self) -> bool:
        return not self.entry.doubt_of(self.figure)


@dataclass(frozen=True)
class Loss:
    """A figure that is worse than an earlier one of the same kind of machine."""

    row: Row
    kind: Kind
    now: Measured
    earlier: Measured
    which: str  # "best", "previous", or both

    @property
    def share(self) -> float:
        return loss_between(self.now.figure, self.earlier.figure)

    def __str__(self) -> str:
        benchmark, name, threads = self.row
        worse = "above" if self.now.figure.at_most else "below"
        values = (
            f"{in_figures(self.now.figure.value)} is {self.share:.0%} {worse} {in_figures(self.earlier.figure.value)}"
        )
        day = self.earlier.entry.date[:10]
        return f"{benchmark}, {name}: {values} ({self.which}, {day}), {threads} threads, {self.kind}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="default: RESULTS.md")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a bar is broken or a figure was lost")
    options = parser.parse_args(words)
    entries = read_entries(options.results) if options.results.exists() else []
    if not entries:
        print(f"no run is recorded in {options.results}")
        return 0
    series = series_of(entries)
    losses = losses_in(series)
    print(describe(series, losses))
    broken = any(one.decides and one.figure.is_broken for one in map(latest, series.values()))
    return 1 if options.strict and (broken or losses) else 0


def series_of(entries: Sequence[Entry]) -> Series:
    """All measurements of a figure on a kind of machine, the oldest first."""
    series: Series = {}
    for entry in sorted(entries, key=lambda entry: entry.date):
        for figure in entry.figures:
            row = (entry.benchmark, figure.name, entry.threads)
            series.setdefault((row, entry.kind), []).append(Measured(entry, figure))
    return series


def latest(measured: Sequence[Measured]) -> Measured:
    """The newest that decides; where none does, the newest."""
    return next((one for one in reversed(measured) if one.decides), measured[-1])


def loss_between(now: Figure, earlier: Figure) -> float:
    """As a share of the earlier one; negative where it became better."""
    if not earlier.value:
        return 0.0
    change = now.value / earlier.value - 1
    return change if now.at_most else -change


def losses_in(series: Series) -> list[Loss]:
    """Where the latest figure is more than a tenth worse than the one before it, or than the best ever."""
    found = []
    for (row, kind), measured in series.items():
        deciding = [one for one in measured if one.decides]
        if len(deciding) < 2:
            continue
        *earlier, now = deciding
        choose: Callable[..., Measured] = min if now.figure.at_most else max
        best, previous = choose(earlier, key=lambda one: one.figure.value), earlier[-1]
        compared = {"best and previous": best} if best is previous else {"best": best, "previous": previous}
        for which, one in compared.items():
            loss = Loss(row, kind, now, one, which)
            if loss.share > LARGEST_LOSS:
                found.append(loss)
    return found


def describe(series: Series, losses: Sequence[Loss]) -> str:
    kinds = list(dict.fromkeys(kind for _, kind in series))
    rows = list(dict.fromkeys(row for row, _ in series))
    letters = {kind: chr(ord("A") + number) if number < 26 else f"K{number}" for number, kind in enumerate(kinds)}
    lines = [f"{letters[kind]}: {kind}; latest run {latest_date(series, kind)}" for kind in kinds]
    width = max(len(label(row)) for row in rows) + 2
    for benchmark in dict.fromkeys(row[0] for row in rows):
        head = "".join(f"{letters[kind]:>12}" for kind in kinds)
        lines += ["", f"{benchmark:<{width}}{'must':>13}{'goal':>8}{head}"]
        for row in (row for row in rows if row[0] == benchmark):
            newest = max((latest(series[row, kind]) for kind in kinds if (row, kind) in series), key=date_of)
            bars = f"{in_limit(newest.figure.must, newest.figure.at_most):>13}{in_figures(newest.figure.goal):>8}"
            cells = "".join(f"{cell(series.get((row, kind))):>12}" for kind in kinds)
            lines.append(f"{label(row):<{width}}{bars}{cells}")
    lines += ["", f"{BROKEN} a bar is broken; {DOUBTED} the machine was not quiet, or it was a trial: decides nothing"]
    if losses:
        lines += ["", f"more than {LARGEST_LOSS:.0%} worse than before:", *(f"  {loss}" for loss in losses)]
    else:
        lines += ["", f"nothing is more than {LARGEST_LOSS:.0%} worse than before"]
    return "\n".join(lines)


def date_of(measured: Measured) -> str:
    return measured.entry.date


def latest_date(series: Series, kind: Kind) -> str:
    return max(date_of(one) for (_, own), measured in series.items() if own == kind for one in measured)[:10]


def label(row: Row) -> str:
    _, name, threads = row
    return f"  {name}" + ("" if threads == 2 else f", {threads} threads")


def cell(measured: Sequence[Measured] | None) -> str:
    """Marks stand after the number; a figure without one ends in a blank, so that numbers are aligned."""
    if measured is None:
        return "- "
    one = latest(measured)
    mark = DOUBTED if not one.decides else BROKEN if one.figure.is_broken else " "
    return f"{in_figures(one.figure.value)}{mark}"


if __name__ == "__main__":
    sys.exit(main())
