"""One benchmark at a time on a machine: the name of a lock file enters, a held lock leaves."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bertie.errors import UserError


class MachineBusyError(UserError):
    """Another benchmark is running; two would halve each other's figures."""


def lock_file() -> Path:
    return Path(tempfile.gettempdir()) / "bertie-benchmark.lock"


@contextlib.contextmanager
def only_one(file: Path | None = None) -> Iterator[None]:
    """Held until the block ends or the process dies, whichever way; the file itself stays."""
    file = file or lock_file()
    handle = _open(file)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read_text(encoding="utf-8", errors="replace").strip() or "unknown"
            raise MachineBusyError(
                f"another benchmark is running (process {holder})", where=str(file), hint="wait until it has ended"
            ) from None
        # The file of another user may be locked but not written; the holder's number is then missing, no more.
        with contextlib.suppress(OSError):
            file.write_text(f"{os.getpid()}\n", encoding="utf-8")
        yield
    finally:
        os.close(handle)


def _open(file: Path) -> int:
    """For reading: that is enough to lock, and works on a file that another user made."""
    try:
        return os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return os.open(file, os.O_RDONLY | os.O_CREAT, 0o666)
