"""Turns Ctrl-C and SIGTERM into a request to stop, which a run follows between two steps."""

import signal
import threading
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """A run was stopped by a signal, after it had saved its state."""

    def __init__(self, signal_number: int, step: int):
        self.signal_number, self.step = signal_number, step
        super().__init__(f"stopped by {signal.Signals(signal_number).name} after {step:,} steps")

    @property
    def exit_code(self) -> int:
        """As a shell reports a process that a signal ended."""
        return 128 + self.signal_number


@dataclass
class StopSignals:
    """While it is open, the first signal is only noted; a second one has its usual effect."""

    received: int | None = None
    _before: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        # Python delivers signals to the main thread only.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self.__exit__()  # so that the next one has its usual effect
