"""Tells files, pipes, folders and devices apart before anything is opened, and refuses paths that no file can have."""

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from bertie.errors import InputError

PathKind = Literal["file", "pipe", "folder", "device", "missing"]
REASONS = {
    errno.ENAMETOOLONG: ("the path is too long", "give a shorter one"),
    errno.ELOOP: ("the path is a link that leads back to itself", "remove the link, or give the file itself"),
    errno.EACCES: ("it may not be read", "change its permissions, or those of its folder"),
}


def kind_of_path(path: str | Path) -> PathKind:
    """Follows links. Opens nothing: a pipe can be opened only once. Refuses a path that no file can have."""
    if "\0" in str(path):
        raise InputError("the path has a NUL byte", where=shorten_path(path), hint="remove it")
    try:
        str(path).encode("utf-8")
        mode = Path(path).stat().st_mode
    except UnicodeEncodeError:
        raise InputError("the name is not UTF-8", where=shorten_path(path), hint="rename the file or folder") from None
    except OSError as error:
        if error.errno not in REASONS:
            return "missing"
        what, hint = REASONS[error.errno]
        raise InputError(what, where=shorten_path(path), hint=hint) from None
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "pipe"
    return "file" if stat.S_ISREG(mode) else "device"


def shorten_path(path: str | Path, length: int = 200) -> str:
    """A path that can be printed: without NUL and bytes that are not UTF-8, and of the very long ones the end."""
    name = os.fsencode(path).decode("utf-8", "backslashreplace").replace("\0", "\\0")
    return name if len(name) <= length else f"…{name[-length:]}"
