"""Run folders enter, what is to be told of them leaves: how far each is, and how well it does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertie.errors import FolderError
from bertie.train.curve import draw
from bertie.train.log import last_of_each_step, read_log
from bertie.train.run_folder import OPTIONS, is_finished, read_object


@dataclass(frozen=True)
class RunOverview:
    name: str
    recipe: str
    step: int
    steps: int
    finished: bool
    loss: float | None  # of the last step
    evaluation: dict[str, Any] | None  # the last one
    tokens_per_second: float | None


def find_runs(folder: Path) -> list[Path]:
    """The run folders directly inside a folder, or the folder itself where it is one."""
    if not folder.is_dir():
        raise FolderError("no such folder", where=str(folder))
    if (folder / OPTIONS).exists():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{OPTIONS}"))


def overview(folder: Path) -> RunOverview:
    if not (folder / OPTIONS).exists():
        raise FolderError(f"is no run folder: it has no {OPTIONS}", where=str(folder))
    options = read_object(folder / OPTIONS)
    steps = last_of_each_step(folder, "step")
    evaluations = last_of_each_step(folder, "evaluation")
    last: dict[str, Any] = steps[-1] if steps else {}
    return RunOverview(
        name=folder.name,
        recipe=str(options.get("recipe", {}).get("name")),
        step=int(last.get("step", 0)),
        steps=int(options.get("options", {}).get("steps", 0)),
        finished=is_finished(folder),
        loss=last.get("loss"),
        evaluation=evaluations[-1] if evaluations else None,
        tokens_per_second=last.get("tokens_per_second"),
    )


def loss_curve(folder: Path, width: int = 72, height: int = 16) -> list[str]:
    """The loss of training as dots, on held-out text as o."""
    trained = [(record["step"], record["loss"]) for record in last_of_each_step(folder, "step")]
    held_out = [(record["step"], record["loss"]) for record in last_of_each_step(folder, "evaluation")]
    return draw({"·": trained, "o": held_out}, width=width, height=height)


def num_resumed(folder: Path) -> int:
    """How often the run went on after it had been stopped or killed."""
    return sum(record.get("event") == "resume" for record in read_log(folder))
