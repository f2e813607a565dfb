"""Summarizes run folders: how far each run is, and how well it does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertie.errors import FolderError
from bertie.train.folder.history import RunHistory
from bertie.train.folder.run_folder import OPTIONS


@dataclass(frozen=True)
class RunOverview:
    name: str
    recipe: str
    size: str  # depth/width
    step: int
    steps: int | None  # planned, where the budget is in steps
    progress: float  # the share of its budget, whatever that is in
    finished: bool
    loss: float | None  # of the last step
    evaluation: dict[str, Any] | None  # the last one
    held_out: dict[str, float]  # what decides: the metric of each task at its best, or the loss of pre-training
    tokens_per_second: float | None
    seconds: float  # of training


def find_runs(folder: Path) -> list[Path]:
    """The run folders directly inside a folder, or the folder itself where it is one."""
    if not folder.is_dir():
        raise FolderError("there is no such folder", where=str(folder))
    if (folder / OPTIONS).exists():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{OPTIONS}"))


def overview(history: RunHistory) -> RunOverview:
    last, recipe = history.last, history.resolved.get("recipe", {})
    encoder = recipe.get("encoder", {})
    return RunOverview(
        name=history.name,
        recipe=str(recipe.get("name")),
        size=f"{encoder.get('stack', {}).get('depth')}/{encoder.get('width')}",
        step=last["step"],
        steps=history.num_steps,
        progress=history.progress,
        finished=history.finished,
        loss=last.get("loss"),
        evaluation=history.evaluations[-1] if history.evaluations else None,
        held_out=history.held_out_figures,
        tokens_per_second=history.tokens_per_second,
        seconds=last["seconds"],
    )
