"""Standard output whose failures are one sentence: a full disk, a closed stream, a reader that is gone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any

from bertie.disk import FULL
from bertie.errors import FolderError, UserError

NAME = "standard output"


@dataclass
class CheckedOutput:
    """A stream that raises a `UserError` where a write fails, so that no other failed write is taken for it."""

    stream: Any
    has_failed: bool = False

    def write(self, text: str) -> int:
        try:
            return int(self.stream.write(text))
        except OSError as error:
            raise self._failure(error) from error

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            raise self._failure(error) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _failure(self, error: OSError) -> Exception:
        self.has_failed = True
        if isinstance(error, BrokenPipeError):
            return error
        full = error.errno in FULL
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        hint = f"{'free some space' if full else 'fix that'}, or write elsewhere, then run it again"
        return FolderError(what, where=NAME, hint=hint)

    def silence(self) -> None:
        """Lets what is left in the buffer go nowhere: Python's last flush would complain again."""
        with suppress(OSError, ValueError, AttributeError):  # it is closed, or no real file
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())


@contextmanager
def checked_stdout() -> Iterator[None]:
    """Standard output within the block is checked, and flushed at its end."""
    if sys.stdout is None:
        raise UserError("it is closed", where=NAME, hint="redirect it to a file, or to /dev/null")
    checked: Any = CheckedOutput(sys.stdout)
    try:
        with redirect_stdout(checked):
            yield
            checked.flush()
    finally:
        if checked.has_failed:
            checked.silence()
