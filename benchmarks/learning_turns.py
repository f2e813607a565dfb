"""Turns of learning: two contenders enter, asked by turns; their speeds leave, the ratio, and whether it is enough.

Both must first give the same loss for the same weights and rows: a wrong answer has no speed.
"""

import math
from dataclasses import dataclass
from typing import Any

from benchmarks.command import say
from benchmarks.figures import OURS, Bar, Speed, paired_ratio
from benchmarks.worker import Worker
from bertie.errors import UserError

CLOSE = 1e-4  # both must give the same loss, up to this share of it

Turns = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Wish:
    """Who is to be beaten, and how often his speed is expected."""

    peer: str
    must: float
    goal: float


def compare(
    name: str, wish: Wish, workers: dict[str, Worker], request: dict[str, Any], num_steps: int, num_rounds: int
) -> dict[str, Any]:
    checks = {other: workers[other].ask({**request, "check": True}) for other in (wish.peer, OURS)}
    refuse_other_losses(name, checks)
    turns: Turns = {other: [] for other in workers}
    for number in range(num_rounds):
        for other in (wish.peer, OURS) if number % 2 else (OURS, wish.peer):
            turns[other].append(workers[other].ask({**request, "steps": num_steps}))
        told = ", ".join(f"{other} {speed_of(turns[other][-1]):,.1f}" for other in workers)
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
    seconds = {other: [turn["seconds"] for turn in turns[other]] for other in turns}
    speeds = {other: Speed.of(turns[other][0]["examples"], seconds[other]) for other in turns}
    ratio = speeds[OURS].best / speeds[wish.peer].best
    bar = Bar(f"{name}: times the peer", ratio, wish.must, wish.goal)
    return {
        "speeds": {
            other: {"best": speed.best, "median": speed.middle, "spread": speed.spread}
            for other, speed in speeds.items()
        },
        "ratio": ratio,
        "paired_ratio": paired_ratio(seconds[OURS], seconds[wish.peer]),
        "losses": losses,
        "foreign": sum(turn.get("foreign", 0.0) for other in turns for turn in turns[other]),
        "bar": {"line": str(bar), "holds": bar.holds, "reached": bar.reached},
        "turns": turns,
    }


def describe(rows: dict[str, Any], peer: str) -> list[str]:
    """The table and the bars."""
    lines = [
        f"peer: {peer}",
        "",
        f"{'examples/s':<14}{'peer':>9}{'bertie':>9}{'times':>7}{'paired':>8}  {'spread':<10} the same loss",
    ]
    for name, row in rows.items():
        other, own = row["speeds"][peer], row["speeds"][OURS]
        spread = f"{other['spread']:.0%}, {own['spread']:.0%}"
        lines.append(
            f"{name:<14}{other['best']:>9,.1f}{own['best']:>9,.1f}{row['ratio']:>7.2f}{row['paired_ratio']:>8.2f}"
            f"  {spread:<10} {row['losses'][OURS]:.6f}"
        )
    return [*lines, "", *(row["bar"]["line"] for row in rows.values())]
