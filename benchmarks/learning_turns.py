"""Turns of learning: contenders enter, asked by turns; their speeds leave, the ratio, and whether it is enough.

Both must first give the same loss for the same weights and rows: a wrong answer has no speed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.command import say
from benchmarks.figures import OURS, SAME_ENGINE, Bar, Peak, Speed, paired_ratio
from benchmarks.load import foreign_share
from benchmarks.record import Figure, doubt_of_spread
from benchmarks.worker import Worker
from bertie.errors import UserError
from bertie.machine import num_cores

PEAK = "peak"
CLOSE = 1e-4  # both must give the same loss, up to this share of it

Turns = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Wish:
    """Who is to be beaten, and how often his speed is expected."""

    peer: str
    must: float
    goal: float | None = None


def compare(
    name: str,
    wish: Wish,
    workers: dict[str, Worker],
    request: dict[str, Any],
    products: Sequence[Sequence[int]],
    num_steps: int,
    num_rounds: int,
) -> dict[str, Any]:
    """`products` are the shapes of the model's matrix products, for the peak."""
    checks = {other: workers[other].ask({**request, "check": True}) for other in (wish.peer, OURS)}
    refuse_other_losses(name, checks)
    turns: Turns = {other: [] for other in workers}
    learning = [other for other in workers if other != PEAK]
    for number in range(num_rounds):
        for other in learning if number % 2 else reversed(learning):
            turns[other].append(workers[other].ask({**request, "steps": num_steps}))
        turns[PEAK].append(workers[PEAK].ask({"products": products}))
        told = ", ".join(f"{other} {speed_of(turns[other][-1]):,.1f}" for other in learning)
        say(f"{name}: round {number + 1}: {told} examples/s")
    return figures(name, wish, turns, {other: check["loss"] for other, check in checks.items()})


def refuse_other_losses(name: str, checks: dict[str, dict[str, Any]]) -> None:
    for what, near in (("tokens", 0.0), ("loss", CLOSE)):
        found = {other: check[what] for other, check in checks.items()}
        if not math.isclose(*found.values(), rel_tol=near):
            raise UserError(f"{name}: the same rows and weights give other {what}, so speeds mean nothing: {found}")


def speed_of(turn: dict[str, Any]) -> float:
    return float(turn["examples"] / turn["seconds"])


def figures(name: str, wish: Wish, turns: Turns, losses: dict[str, float]) -> dict[str, Any]:
    seconds = {other: [turn["seconds"] for turn in turns[other]] for other in turns if other != PEAK}
    speeds = {other: Speed.of(turns[other][0]["examples"], seconds[other]) for other in seconds}
    ratio = speeds[OURS].best / speeds[wish.peer].best
    peak = Peak.of(turns[PEAK])
    share = max(turn["operations"] / turn["seconds"] for turn in turns[OURS]) / peak.flops
    bar = Bar(f"{name}: times the peer", ratio, wish.must, wish.goal, peak.enough(share))
    return {
        "speeds": {other: speed.facts() for other, speed in speeds.items()},
        "ratio": ratio,
        "paired_ratio": paired_ratio(seconds[OURS], seconds[wish.peer]),
        "peak": peak.facts(),
        "share_of_peak": share,
        "losses": losses,
        "foreign": sum(turn.get("foreign", 0.0) for other in turns for turn in turns[other]),
        "bar": bar.facts(),
        "turns": turns,
    }


def foreign_load(rows: Mapping[str, Mapping[str, Any]]) -> float:
    turns = [turn for row in rows.values() for one in row["turns"].values() for turn in one]
    return foreign_share(turns, num_cores())


def recorded(rows: Mapping[str, Mapping[str, Any]], peer: str) -> list[Figure]:
    found = []
    for name, row in rows.items():
        doubt = doubt_of_spread(*(row["speeds"][other]["spread"] for other in (peer, OURS)))
        found.append(Figure.of_bar(row["bar"], doubt))
        found.append(Figure(f"{name}: share of the float32 peak", row["share_of_peak"], doubt=doubt))
        found += [
            Figure(f"{name}: examples/s of {other}", speed["best"], doubt=doubt_of_spread(speed["spread"]))
            for other, speed in row["speeds"].items()
        ]
    return found


def describe(rows: dict[str, Any], peer: str, engines: Mapping[str, str]) -> list[str]:
    """The table and the bars."""
    lines = [
        f"peer: {peer}",
        "",
        f"{'examples/s':<14}{'peer':>9}{'bertie':>9}{'times':>7}{'paired':>8}{'of peak':>9}  {'spread':<10} same loss",
    ]
    for name, row in rows.items():
        other, own = row["speeds"][peer], row["speeds"][OURS]
        spread = f"{other['spread']:.0%}, {own['spread']:.0%}"
        lines.append(
            f"{name:<14}{other['best']:>9,.1f}{own['best']:>9,.1f}{row['ratio']:>7.2f}{row['paired_ratio']:>8.2f}"
            f"{row['share_of_peak']:>9.2f}  {spread:<10} {row['losses'][OURS]:.6f}"
        )
        if peer + SAME_ENGINE in row["speeds"]:
            second = row["speeds"][peer + SAME_ENGINE]
            lines.append(
                f"{'':<14}{second['best']:>9,.1f}{'':>9}{own['best'] / second['best']:>7.2f}"
                f"  the peer with {engines[peer + SAME_ENGINE]}"
            )
    return [
        *lines,
        "",
        *(f"products of {name}: {engine}" for name, engine in engines.items()),
        f"others used {foreign_load(rows):.1%} of the processor meanwhile",
        "",
        *(row["bar"]["line"] for row in rows.values()),
    ]
