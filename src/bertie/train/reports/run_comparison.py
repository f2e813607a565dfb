"""Compares runs: which options differ, and how far, how good and how fast each run is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertie.reporting.quantities import format_duration
from bertie.train.folder.history import RunHistory
from bertie.train.reports.run_charts import figure_name, main_figures

NONE = "–"
# What decides which text is held out and how it is cut: without these equal, losses are of different things.
MEASURED_ON = ("corpus", "tokenizer", "options.held_out", "options.eval_rows", "options.length")


@dataclass(frozen=True)
class Comparison:
    names: tuple[str, ...]
    options: dict[str, tuple[str, ...]]  # those that differ, one value a run
    figures: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def compare_runs(runs: Sequence[RunHistory]) -> Comparison:
    flat = [flattened(run.resolved) for run in runs]
    names = list(dict.fromkeys(name for one in flat for name in one))
    differing = {
        name: tuple(_short(one.get(name)) for one in flat)
        for name in names
        if any(one.get(name) != flat[0].get(name) for one in flat)
    }
    loss = main_figures(runs)[0] if main_figures(runs) else "loss"
    notes = [f"not measured on the same text: {name} differs" for name in MEASURED_ON if name in differing]
    return Comparison(tuple(run.name for run in runs), differing, _figures(runs, loss), tuple(notes))


def flattened(value: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Nested names joined by points. Parts in a list are named by what they read or are; other lists are values."""
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        whole = f"{name}.{key}" if name else key
        if isinstance(inner, list) and inner and all(isinstance(one, Mapping) and "kind" in one for one in inner):
            inner = {one.get("field", one["kind"]): one for one in inner}
        flat |= flattened(inner, whole) if isinstance(inner, Mapping) else {whole: inner}
    return flat


def seconds_to_reach(run: RunHistory, figure: str, goal: float) -> float | None:
    """The training time of the first evaluation that was at the goal or below."""
    return next((x for x, y in run.held_out(figure, "time") if y <= goal), None)


def _figures(runs: Sequence[RunHistory], loss: str) -> dict[str, tuple[str, ...]]:
    last = [run.evaluations[-1] if run.evaluations else {} for run in runs]
    accuracies = dict.fromkeys(name for one in last for name in one if name.endswith("accuracy"))
    rows = {
        "steps": [f"{run.last['step']:,}" for run in runs],
        "tokens": [f"{run.last['tokens']:,}" for run in runs],
        "training time": [format_duration(run.last["seconds"]) for run in runs],
        "tokens/s": [NONE if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}" for run in runs],
        f"{figure_name(loss, runs)}, last": [_number(one.get(loss)) for one in last],
        f"{figure_name(loss, runs)}, best": [
            _number(min((y for _, y in run.held_out(loss)), default=None)) for run in runs
        ],
        **{figure_name(name): [_share(one.get(name)) for one in last] for name in accuracies if "unigram" not in name},
    }
    finals = [one[loss] for one in last if loss in one]
    if finals:
        reached = [seconds_to_reach(run, loss, max(finals)) for run in runs]
        rows[f"time to {max(finals):.4f}"] = [NONE if one is None else format_duration(one) for one in reached]
    return {name: tuple(row) for name, row in rows.items()}


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.4f}"


def _share(value: float | None) -> str:
    return NONE if value is None else f"{value:.2%}"


def _short(value: Any) -> str:
    """Digests by their beginning."""
    text = NONE if value is None else str(value)
    return f"{text[:20]}…" if len(text) > 24 and " " not in text else text
