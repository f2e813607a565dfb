"""Shows events on standard error: messages as lines, and below them one bar with rate and time left."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from bertie.reporting.events import Event, progress

PATIENCE = 1.0  # seconds before a bar appears: short work needs none
TRAINING = "training"  # the stage of a run's steps
STYLES = {"warning": "yellow", "damaged": "yellow"}
BAR_FIELDS = ("stage", "done", "total", "unit", "fraction")
STEP_FIELDS = ("step", "loss", "tokens_per_second", "share_of_peak")  # of a run's record, in this order


@dataclass
class ProgressDisplay(AbstractContextManager["ProgressDisplay"]):
    """Give it as `on_event`. The message of any event is printed; "progress" and "step" move the bar, which is shown
    only in a terminal (`show=None`), while the display is used as a context.

    >>> with ProgressDisplay() as display:
    ...     display(progress("counting words", 0, 10, "files"))
    """

    console: Console = field(default_factory=lambda: Console(stderr=True, emoji=False))
    show: bool | None = None
    quiet: bool = False
    _bar: Progress | None = None  # once there is something to show in it
    _stages: dict[str, "_Stage"] = field(default_factory=dict)

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None and self._bar.live.is_started:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        is_shown = not self.quiet and (self.console.is_terminal if self.show is None else self.show)
        if event.kind in ("progress", "step") and is_shown:
            self._move(event.data)
        elif event.kind == "stage":  # the bars of what came before are over
            self.__exit__()
            self._bar, self._stages = None, {}
        if event.message and not self.quiet:
            style = STYLES.get(event.kind)
            self.console.print(event.message, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def _move(self, data: Mapping[str, Any]) -> None:
        """`data` are those of an event "progress" or "step"."""
        fraction = data.get("progress", data.get("fraction"))
        name, total = data.get("stage", TRAINING), data["total"] if fraction is None else 1.0
        place = data["done"] if fraction is None else fraction
        if self._bar is None:
            text = (TextColumn(words, markup=False) for words in ("{task.description}", "{task.fields[text]}"))
            self._bar = Progress(
                next(text), BarColumn(), next(text), TimeRemainingColumn(), console=self.console, transient=True
            )
        if name not in self._stages:
            # Where the first event is, what an earlier run did ends: it does not count as speed.
            task = self._bar.add_task(name, total=total, completed=place, text="")
            self._stages[name] = _Stage(task, data.get("done", 0))
        stage = self._stages[name]
        for other in self._stages.values():
            self._bar.update(other.task, visible=other is stage)
        percent = "" if fraction is None else f"{place:.0%}  "
        self._bar.update(stage.task, total=total, completed=place, text=percent + stage.text(data))
        if not self._bar.live.is_started and time.monotonic() - stage.begun > PATIENCE:
            self._bar.start()


class _Stage:
    def __init__(self, task: TaskID, first: int):
        self.task, self.first, self.begun = task, first, time.monotonic()

    def text(self, data: Mapping[str, Any]) -> str:
        if "stage" not in data:
            return "  ".join(_figure(name, data[name]) for name in STEP_FIELDS if name in data)
        done, total, unit = data["done"], data["total"], data["unit"]
        elapsed = time.monotonic() - self.begun
        words = [f"{done:,}/{total:,} {unit}" if total is not None else f"{done:,} {unit}"] if unit else []
        if unit and done > self.first and elapsed > 0:
            words.append(f"{(done - self.first) / elapsed:,.0f} {unit}/s")
        words += [_figure(name, value) for name, value in data.items() if name not in BAR_FIELDS]
        return "  ".join(words)


def _figure(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    if name.endswith("_per_second"):
        return f"{value:,.0f} {words.removesuffix(' per second')}/s"
    if name.startswith("share_of_"):
        return f"{value:.0%} of {words.removeprefix('share of ')}"
    if isinstance(value, float):
        return f"{words} {value:.3f}"
    return f"{words} {value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress_line(what: str, total: int, unit: str, show: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Yields `advance(count)`, for work that has no `on_event`. `show=None` shows the bar in a terminal."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda count: None
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        display(progress(what, done, total, unit))

    with ProgressDisplay(show=True) as display:
        advance(0)
        yield advance
