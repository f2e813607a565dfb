"""Notices that other programs keep the machine busy, from the times of steps and from the load average.

Two threads that wait for each other suffer most: beside other work they can take several times as long as one. Times
are compared per token, as steps differ in size; a run that was slow from its beginning is recognized by the load alone.
"""

import math
import os
import time
from collections import deque
from collections.abc import Callable

SLOW = 3.0  # times as long as the best steps
RECENT_STEPS, RECENT_SECONDS = 5, 10.0  # that all have to be slow: one hiccup is none of our business
WINDOW = 1000  # steps among which the best are looked for
LOADED = 1.0  # threads of others that find no free core; half of it is enough where steps are slow
SETTLED = 60.0  # seconds after which the load average is that of the run, not of what was before it
PAUSE = 600.0  # seconds between two notices


def load_average() -> float | None:
    """Of the last minute, over all programs; None where the system has none."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


class BusyMachine:
    """Watches a run that computes with `num_threads` threads in all its processes.

    Cores are those of the machine, also where this process may use only some: the load average counts them all.
    """

    def __init__(
        self,
        num_threads: int,
        num_cores: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[], float | None] = load_average,
    ):
        self.num_threads, self.num_cores = num_threads, num_cores or os.cpu_count() or 1
        self._clock, self._load = clock, load
        self._begun, self._told = clock(), -math.inf
        self._steps: deque[tuple[float, float]] = deque(maxlen=WINDOW)  # seconds, seconds a token

    def add_step(self, seconds: float, num_tokens: int) -> str | None:
        """Returns a sentence if the machine is busy, at most once in ten minutes."""
        if num_tokens > 0 and seconds > 0:
            self._steps.append((seconds, seconds / num_tokens))
        now = self._clock()
        if len(self._steps) <= RECENT_STEPS or now - self._told < PAUSE:
            return None
        slowness, load = self._slowness(), self._load()
        missing = None if load is None else self._missing_cores(load)
        is_slow = slowness >= SLOW and (missing is None or missing >= LOADED / 2)
        is_loaded = missing is not None and missing >= LOADED and now - self._begun >= SETTLED
        if not (is_slow or is_loaded):
            return None
        self._told = now
        return self._describe(slowness if is_slow else None, load if missing and missing >= LOADED / 2 else None)

    def _slowness(self) -> float:
        """How many times as long as the best step even the fastest of the latest ones took, per token."""
        count, spent = 0, 0.0
        for seconds, _ in reversed(self._steps):
            if count >= RECENT_STEPS and spent >= RECENT_SECONDS:
                break
            count, spent = count + 1, spent + seconds
        if spent < RECENT_SECONDS or count == len(self._steps):
            return 1.0
        paces = [pace for _, pace in self._steps]
        return min(paces[-count:]) / min(paces)

    def _missing_cores(self, load: float) -> float:
        """Threads of others that find no core which we leave free."""
        others = max(0.0, load - self.num_threads)
        return others - max(0, self.num_cores - self.num_threads)

    def _describe(self, slowness: float | None, load: float | None) -> str:
        cores = f"{self.num_cores} core{'' if self.num_cores == 1 else 's'}"
        seen = [] if slowness is None else [f"steps take {slowness:.1f} times as long per token as the best ones"]
        seen += [] if load is None else [f"the load average is {load:.1f} on {cores}"]
        helps = "wait, or stop other programs"
        if self.num_threads > 1:
            helps += (
                ", or stop this and continue it with OMP_NUM_THREADS=1, as several threads can be slower than one here"
            )
        return f"the machine is busy: {' and '.join(seen)}; what helps: {helps}"
