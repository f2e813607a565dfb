"""Fine-tuning with several seeds: the mean and deviation of their figures, and the best model."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bertie.disk import write_file
from bertie.errors import FolderError
from bertie.train.folder.run_folder import MODEL, SUMMARY

Summaries = Mapping[int, Mapping[str, Any]]  # by seed


def seed_folder(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}"


def refuse_other_models(out: Path) -> None:
    """OUT/model will be replaced by the best of the seeds: it must be made by such a run, or not exist."""
    if not (out / MODEL).exists():
        return
    try:
        ours = "seeds" in json.loads((out / SUMMARY).read_bytes())
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise FolderError(
            f"has a {MODEL} that was not made by a run of several seeds", where=str(out), hint="choose another `out`"
        )


def spread(summaries: Summaries) -> dict[str, dict[str, float]]:
    """Mean and deviation of every figure over the seeds; one seed has no deviation."""
    measured = [summary["evaluation"] for summary in summaries.values() if summary["evaluation"]]
    names = [name for name, value in (measured[0] if measured else {}).items() if isinstance(value, int | float)]
    columns = {name: [float(one[name]) for one in measured] for name in names}
    return {
        name: {"mean": mean(values), "deviation": stdev(values) if len(values) > 1 else math.nan}
        for name, values in columns.items()
    }


def best_seed(summaries: Summaries) -> int:
    """The one with the lowest rank; the first where nothing was measured."""
    return min(summaries, key=lambda seed: (summaries[seed]["best"] or {}).get("rank", math.inf))


def keep_best(out: Path, summaries: Summaries) -> dict[str, Any]:
    """Copies the best model to OUT/model and writes the figures of all seeds to OUT/summary.json."""
    best = best_seed(summaries)
    summary = {
        **summaries[best],
        "best_seed": best,
        "seeds": {str(seed): summary["evaluation"] for seed, summary in summaries.items()},
        "spread": spread(summaries),
    }
    part = out / f".{MODEL}.part"
    for old in (part, out / MODEL):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(seed_folder(out, best) / MODEL, part)
    # First, so that after a kill there is no model without a summary.
    write_file(out / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode())
    part.rename(out / MODEL)
    return summary


def seeds_from(first: int, count: int) -> Sequence[int]:
    return range(first, first + count)
