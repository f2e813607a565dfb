"""Reads the history of a run: what was measured after which step, how many tokens and how many seconds.

Seconds are those of training, evaluations and checkpoints included. Pauses between a stop and a resume do not count,
nor do steps that a kill undid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from bertie.errors import FolderError, SpecError
from bertie.models.recipe import OBJECTIVES, prediction_losses
from bertie.tasks.task import Task
from bertie.train.folder.log import standing_records
from bertie.train.folder.run_folder import OPTIONS, is_finished, read_object

Record = dict[str, Any]
Axis = Literal["steps", "tokens", "time"]
AXES: dict[Axis, str] = {"steps": "step", "tokens": "tokens", "time": "seconds"}
# What a record holds beside figures of the model.
FACTS = {"event", "step", "tokens", "seconds", "time", "progress", "lr", "norm", "share_of_peak"}
NO_LOSSES = ("tokens_per_second", "perplexity")
SHARES = ("accuracy", "_found", "_agreement")  # ends of the names of figures that are shares; others are losses


@dataclass(frozen=True)
class RunHistory:
    name: str
    resolved: Record  # options.json: options, recipe, and the digests of what the run was given
    steps: tuple[Record, ...]  # of the log, each with `step`, `tokens` and `seconds`
    evaluations: tuple[Record, ...]  # likewise
    num_resumed: int
    finished: bool

    @property
    def last(self) -> Record:
        return self.steps[-1] if self.steps else {"step": 0, "tokens": 0, "seconds": 0.0}

    @property
    def num_steps(self) -> int | None:
        """The planned number, where the budget is in steps."""
        planned: int | None = self.resolved.get("options", {}).get("budget", {}).get("steps")
        return planned

    @property
    def progress(self) -> float:
        """The share of the run's budget that is used."""
        return 1.0 if self.finished else float(self.last.get("progress", 0.0))

    @property
    def tokens_per_second(self) -> float | None:
        """Of all steps together, without evaluations and checkpoints."""
        tokens = [0, *(record["tokens"] for record in self.steps)]
        seconds = sum(
            (record["tokens"] - before) / record["tokens_per_second"]
            for before, record in zip(tokens, self.steps, strict=False)
        )
        return tokens[-1] / seconds if seconds else None

    @property
    def losses(self) -> set[str]:
        """The figures of training steps that are losses."""
        return {name for name in figure_names(self.steps) if not name.endswith((*SHARES, *NO_LOSSES))}

    @cached_property
    def task_metrics(self) -> tuple[str, ...]:
        """The metric that decides between models, for each task of the run; none in pre-training, or where a task is
        from a plugin that is not loaded."""
        given = self.resolved.get("recipe", {}).get("objectives", [])
        try:
            objectives = [OBJECTIVES[one["kind"]].parse(one) for one in given if one["kind"] in OBJECTIVES]
        except SpecError:  # of another version
            return ()
        tasks = [one for one in objectives if isinstance(one, Task)]
        return tuple(task.main if len(tasks) == 1 else f"{task.name}.{task.main}" for task in tasks)

    @property
    def best_evaluation(self) -> Record | None:
        """That of the finished model: of a task, the best one, and the first of equals; else the last one."""
        if not self.evaluations or not self.task_metrics:
            return self.evaluations[-1] if self.evaluations else None

        def goodness(figures: Record) -> float:
            total = sum(figures.get(name, -math.inf) for name in self.task_metrics)
            return -math.inf if math.isnan(total) else total

        return max(self.evaluations, key=goodness)

    @property
    def held_out_figures(self) -> dict[str, float]:
        """What `best_evaluation` is judged by: the metric of each task, or the loss that pre-training reduces."""
        measured = self.best_evaluation or {}
        deciding = [name for name in self.task_metrics if name in measured]
        losses = [name for name in (*prediction_losses(), "loss") if name in measured]
        return {name: measured[name] for name in deciding or losses[:1]}

    def trained(self, figure: str, against: Axis = "steps") -> list[tuple[float, float]]:
        return points(self.steps, figure, against)

    def held_out(self, figure: str, against: Axis = "steps") -> list[tuple[float, float]]:
        return points(self.evaluations, figure, against)


def read_history(folder: Path) -> RunHistory:
    if not (folder / OPTIONS).exists():
        raise FolderError(f"it is not a run folder: it has no {OPTIONS}", where=str(folder))
    records = standing_records(folder)
    steps: list[Record] = []
    evaluations: list[Record] = []
    now: Record = {"tokens": 0, "seconds": 0.0}
    for record in records:
        if record["event"] == "step":
            now = {"tokens": record["tokens"], "seconds": record["seconds"]}
            steps.append(record)
        elif record["event"] == "evaluation":
            evaluations.append({**now, **record})
    return RunHistory(
        name=folder.resolve().name,
        resolved=read_object(folder / OPTIONS),
        steps=tuple(steps),
        evaluations=tuple(evaluations),
        num_resumed=sum(record["event"] == "resume" for record in records),
        finished=is_finished(folder),
    )


def points(records: Sequence[Record], figure: str, against: Axis = "steps") -> list[tuple[float, float]]:
    """The records in which the figure is a finite number."""
    across = AXES[against]
    found = [
        (float(record[across]), record[figure]) for record in records if isinstance(record.get(figure), int | float)
    ]
    return [(x, float(y)) for x, y in found if math.isfinite(y)]


def figure_names(records: Sequence[Record]) -> list[str]:
    """Losses, accuracies and the speed, in the order of the log."""
    names = dict.fromkeys(
        name for record in records for name, value in record.items() if isinstance(value, int | float)
    )
    return [name for name in names if name not in FACTS]
