"""What long work reports while it runs: events, given to a callback.

A command line prints them, a notebook draws them, a server sends them on. The kinds:

- "message": something worth reading; "warning": something that may surprise. Neither has data.
- "stage": another part of the work begins; its message says which.
- "progress": `done` of `total` (None where it is not known) `unit`s of a `stage`; other fields are shown beside them.
- "start", "step", "evaluation", "resume", "saved", "damaged", "stopped", "finished": what happens in a training run.
  Their data are the record that its log keeps.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """Something that happened in a job.

    >>> rows = [{"text": "a great film", "label": "good"}, {"text": "so dull", "label": "bad"}]
    >>> seen = []
    >>> run = bertie.finetune("classify", base="my-model", train=rows, epochs=1, on_event=seen.append)
    >>> isinstance(seen[0], bertie.Event) and "step" in {event.kind for event in seen}
    True
    """

    kind: str
    message: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


OnEvent = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The `on_event` of callers who want no events."""


def warn(event: Event) -> None:
    """The `on_event` of Python's functions, unless another is given: warnings become Python's own."""
    if event.kind == "warning":
        warnings.warn(event.message, stacklevel=3)


def message(text: str) -> Event:
    return Event("message", text)


def warning(text: str) -> Event:
    return Event("warning", text)


def progress(stage: str, done: int, total: int | None, unit: str, **data: Any) -> Event:
    """`done` counts from the beginning of the stage, not from the last event. Work that was done before this process
    started is named by `resumed`, so that it does not count as speed."""
    return Event("progress", data={"stage": stage, "done": done, "total": total, "unit": unit, **data})
