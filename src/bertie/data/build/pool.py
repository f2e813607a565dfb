"""Applies a function to a stream of works in several processes, and yields results as they are finished.

Workers are started fresh, so that they carry neither the caller's memory nor its locks, and end when their parent does,
however it ended.
"""

import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from bertie.data.build.memory_use import bound_caches
from bertie.errors import UserError

W = TypeVar("W")
R = TypeVar("R")


class Pool:
    """One worker is this process itself."""

    def __init__(self, num_workers: int):
        self.num_workers = num_workers
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Pool":
        if self.num_workers > 1:
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self.num_workers, context, initializer=begin_worker)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._executor is not None:
            # After a user's mistake the folder is swept, and nobody may still be writing there.
            wait = not any(raised) or isinstance(raised[1], UserError)
            self._executor.shutdown(wait=wait, cancel_futures=True)

    def warm_up(self) -> None:
        """Start the workers while the caller still plans: starting is mostly imports."""
        if self._executor is not None:
            for _ in range(self.num_workers):
                self._executor.submit(_ready)

    def limit(self, num_works: int) -> None:
        """No more workers than there is work for; a single one is this process itself."""
        self.num_workers = min(self.num_workers, num_works)
        if self.num_workers <= 1:
            self._executor = None  # nothing was submitted, so there is nobody to end

    def run(self, function: Callable[[W], R], works: Iterable[W]) -> Iterator[tuple[W, R]]:
        """Each work with its result, in the order of finishing. Few works wait, since they may hold text."""
        if self._executor is None:
            for work in works:
                yield work, function(work)
            return
        waiting: dict[Future[R], W] = {}
        try:
            for work in works:
                waiting[self._executor.submit(function, work)] = work
                if len(waiting) > self.num_workers:
                    yield from _finished(waiting)
            while waiting:
                yield from _finished(waiting)
        except BrokenProcessPool:
            what = "a worker process was ended from outside (was the memory full?)"
            raise UserError(what, hint="run it again, perhaps with fewer `workers`: it continues") from None
        finally:
            for future in waiting:
                future.cancel()


def _finished(waiting: dict[Future[R], W]) -> Iterator[tuple[W, R]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()


def begin_worker() -> None:
    """In a new process: it ends with its parent, also where that is killed, and leaves Ctrl-C to it."""
    bound_caches()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it and stops us
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _ready() -> None:
    importlib.import_module("bertie.data.build.tokenising")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
