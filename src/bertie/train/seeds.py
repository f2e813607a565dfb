"""One fine-tuning with several seeds: summaries of runs enter, their mean and deviation leave, and the best model."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bertie.data.manifest import write_whole
from bertie.errors import FolderError
from bertie.train.run_folder import MODEL, SUMMARY

Summaries = Mapping[int, Mapping[str, Any]]  # by seed


def seed_folder(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}"


def refuse_other_models(out: Path) -> None:
    """OUT/model is replaced by the best of the seeds: it must be one of ours, or not be there."""
    if not (out / MODEL).exists():
        return
    try:
        ours = "seeds" in json.loads((out / SUMMARY).read_bytes())
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise FolderError(
            f"has a {MODEL} that no run of several seeds made", where=str(out), hint="choose another --out"
        )


def spread(summaries: Summaries) -> dict[str, dict[str, float]]:
    """Of every figure: its mean, and its deviation from seed to seed where there are two."""
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
    """OUT/model is a copy of the best seed's, OUT/summary.json says how all did."""
    best = best_seed(summaries)
    told = {
        **summaries[best],
        "best_seed": best,
        "seeds": {str(seed): summary["evaluation"] for seed, summary in summaries.items()},
        "spread": spread(summaries),
    }
    part = out / f".{MODEL}.part"
    for old in (part, out / MODEL):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(seed_folder(out, best) / MODEL, part)
    # First, so that a kill leaves no model that nobody made.
    write_whole(out / SUMMARY, (json.dumps(told, indent=1) + "\n").encode())
    part.rename(out / MODEL)
    return told


def seeds_from(first: int, count: int) -> Sequence[int]:
    return range(first, first + count)
