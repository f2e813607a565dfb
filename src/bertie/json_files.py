"""Reads files of folders that anybody may have written: regular files only, JSON of bounded size and depth.

Whatever else is found there (a folder, a pipe, an endless device, nonsense) is one sentence that names the file.
"""

import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

from bertie.errors import FolderError, UserError

MEGABYTE = 2**20
LARGEST_CONFIG = 8 * MEGABYTE
LARGEST_VOCABULARY = 64 * MEGABYTE
MOST_VALUES = 5_000_000  # of one JSON file: each takes about a hundred bytes of memory
DEEPEST = 64
MODEL_CONFIGS = ("config.json", "adapter_config.json")  # what every model folder has
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
AGAIN = "the file is broken or incomplete: download it again"


def check_regular(path: Path, error: type[UserError] = FolderError) -> int:
    """Refuses what is no ordinary file, before it is opened: reading a device may never end. Returns the size."""
    try:
        found = path.stat()
    except OSError as failure:
        raise _unreadable(failure, path, error) from None
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise error(f"is {KINDS.get(kind, 'a device')}, not a file", where=str(path))
    return found.st_size


def read_regular(path: Path, limit: int = LARGEST_CONFIG, error: type[UserError] = FolderError) -> bytes:
    """The content of an ordinary file of at most `limit` bytes."""
    size = check_regular(path, error)
    if size > limit:
        what = f"has {size:,} bytes, more than the {limit:,} that are read of such a file"
        raise error(what, where=str(path))
    try:
        # A pipe may have taken the file's place since: opening it must not wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            return file.read(limit + 1)
    except OSError as failure:
        raise _unreadable(failure, path, error) from None


def read_json(path: Path, limit: int = LARGEST_CONFIG, error: type[UserError] = FolderError) -> Any:
    """The content of a JSON file. An error names the file and, where there is one, the line."""
    raw = read_regular(path, limit, error)
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise error(f"has more than {MOST_VALUES:,} values", where=str(path))
    try:
        content = json.loads(raw.decode("utf-8"), object_pairs_hook=_unambiguous)
    except UnicodeDecodeError as failure:
        raise error(f"is not valid JSON (not UTF-8 at byte {failure.start})", where=str(path), hint=AGAIN) from None
    except json.JSONDecodeError as failure:
        line = f"{path}:{failure.lineno}"
        raise error(f"is not valid JSON ({failure.msg})", where=line, hint=AGAIN) from None
    except RecursionError:
        raise error("is nested too deeply", where=str(path)) from None
    except ValueError as failure:  # a number of thousands of digits, or a key with two values
        raise error(f"is not valid JSON ({str(failure).partition(';')[0]})", where=str(path)) from None
    level, depth = [content] if isinstance(content, dict | list) else [], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise error("is nested too deeply", where=str(path))
        inner = [one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer)]
        level = [one for one in inner if isinstance(one, dict | list)]
    return content


def read_object(path: Path, limit: int = LARGEST_CONFIG, error: type[UserError] = FolderError) -> dict[str, Any]:
    """The content of a JSON file that holds an object."""
    content = read_json(path, limit, error)
    if not isinstance(content, dict):
        raise error("is not a JSON object", where=str(path))
    return content


def shown(value: Any) -> str:
    """A value in a message, shortened; a number of thousands of digits cannot even be printed."""
    if type(value) is int and abs(value) >= 10**20:
        return f"a number of {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two values they take."""
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen and seen[key] != value:
                raise ValueError(f"the key {key!r} has two values")
            seen[key] = value
    return content


def _unreadable(failure: OSError, path: Path, error: type[UserError]) -> UserError:
    if failure.errno in (errno.ENOENT, errno.ENOTDIR):
        hint = "is it a model folder?" if path.name in MODEL_CONFIGS else None
        return error(f"has no {path.name}", where=str(path.parent), hint=hint)
    return error(f"cannot be read ({failure.strerror or failure})", where=str(path))
