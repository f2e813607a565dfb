"""One progress line for long work: rate and time left, on standard error, only where a person is watching."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 1.0  # seconds before a line appears: short work stays silent


@contextmanager
def progress_line(what: str, total: int, unit: str, show: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Yields `advance(count)`. `show=None` shows it in a terminal, once the work has lasted a moment."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda count: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=total, rate="")
    begun = time.monotonic()

    def advance(count: int) -> None:
        elapsed = time.monotonic() - begun
        if elapsed > PATIENCE and not progress.live.is_started:
            progress.start()
        done = progress.tasks[task].completed + count
        progress.update(task, advance=count, rate=f"{done / max(elapsed, 1e-9):,.0f} {unit}/s")

    try:
        yield advance
    finally:
        if progress.live.is_started:
            progress.stop()
