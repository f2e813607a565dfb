"""Writes files and folders that are there whole or not at all, locks them, hashes them, and explains failed writes.

A kill, a power cut or a full disk leaves the old content or the new one, never a mixture. `check_output` and
`refuse_inputs` see to it, before any work, that no output takes the place of an input or of a file of the user's.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, BinaryIO

from filelock import lock_descriptor

from bertie.errors import FolderError

PART = ".part"  # how the name of a file ends that is still being written
FULL = (errno.ENOSPC, errno.EDQUOT)
AGAIN = "run it again, or choose another `out`"
_SEAL = re.compile(rb'\{\n *"sha256": "([0-9a-f]{64})",\n')
MARK = b"written by bertie"  # in the first bytes of pages and pictures, which may be replaced by newer ones
MARKED = 1024  # bytes in which the mark is


@contextmanager
def atomic_file(path: Path, *, sync_name: bool = True) -> Iterator[BinaryIO]:
    """A file to write into that takes the place of `path` when the block ends well. Who writes many files may pass
    `sync_name=False` and call `sync_folder` once at the end."""
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        with part.open("wb") as file:
            yield file
            sync_file(file)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if sync_name:
        sync_folder(path.parent)


def write_file(path: Path, content: bytes | memoryview, *, sync_name: bool = True) -> None:
    with atomic_file(path, sync_name=sync_name) as file:
        file.write(content)


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """A folder to write into that takes the place of `out`, and of what was there, when the block ends well."""
    with writing_to(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        work = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    new, old = work / "new", work / "old"
    try:
        with writing_to(out):
            new.mkdir()
            yield new
            if out.exists():
                out.rename(old)
            new.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def sync_file(file: IO[bytes] | IO[str]) -> None:
    """What was written into the file is safe from a power cut once this returns."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Names in the folder, such as those given by a rename, are safe from a power cut once this returns."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_private(path: Path) -> bool:
    """Whether the file or folder belongs to this user, and nobody else may write to it."""
    if os.name != "posix":
        return True
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def sealed(text: str) -> bytes:
    """An indented JSON object with the digest of all bytes behind it as its first field; `is_sealed` checks it."""
    start, _, rest = text.partition("\n")
    if start != "{" or not rest:
        raise ValueError("only an indented object with a field has room for its digest")
    margin = rest[: len(rest) - len(rest.lstrip(" "))]
    return f'{{\n{margin}"sha256": "{hashlib.sha256(rest.encode()).hexdigest()}",\n{rest}'.encode()


def is_sealed(content: bytes) -> bool | None:
    """Whether the bytes are those that `sealed` returned; None where they never had a digest."""
    found = _SEAL.match(content)
    if found is None:
        return False if b'"sha256"' in content[:40] else None
    return hashlib.sha256(content[found.end() :]).hexdigest().encode() == found[1]


def lock_file(file: BinaryIO, used: Path, on_wait: Callable[[], None] | None = None) -> None:
    """Keeps other processes away from `used` until the open file is closed, also by a kill.

    Where another process has the lock, this raises; with `on_wait` it calls that once and waits instead.
    """
    try:
        locked = lock_descriptor(file.fileno(), blocking=False)
        if not locked and on_wait is not None:
            on_wait()
            locked = lock_descriptor(file.fileno())
    except OSError as error:
        raise FolderError(f"cannot be locked ({error.strerror or error})", where=str(used)) from None
    if not locked:
        raise FolderError(f"another process is using {used}", hint="wait until it ends, or stop it first")


@contextmanager
def writing_to(target: Path, then: str = AGAIN, after: str = "") -> Iterator[None]:
    """Turns a failed write into one sentence. `then` is what to do once there is space again; `after` is how much was
    done before."""
    try:
        yield
    except OSError as error:
        raise write_failure(error, target, then, after) from error


def write_failure(error: Exception, target: Path, then: str = AGAIN, after: str = "") -> FolderError:
    number = getattr(error, "errno", None)
    full = number in FULL or any(f"(os error {code})" in str(error) for code in FULL)  # as Rust libraries say it
    what = "the disk is full" if full else f"writing failed ({getattr(error, 'strerror', None) or error})"
    where = f"after {after}, {what}" if after else what
    return FolderError(where, where=str(target), hint=f"{'free some space' if full else 'fix that'}, then {then}")


def check_output(file: Path, option: str, inputs: Sequence[str | Path] = (), overwrite: bool | None = None) -> None:
    """Refuses a file that is an input, that exists already, or that cannot be written.

    `option` is the name by which the user gives it. An existing file is replaced if the user says `overwrite`; if it is
    None, which is for pages and pictures, a file that bertie wrote is.
    """
    other = f"choose another `{option}`"
    with writing_to(file, other):
        if file.is_dir():
            raise FolderError("is a folder", where=str(file), hint=f"name a file in it as `{option}`")
        refuse_inputs(file, inputs, option)
        if file.exists() and not file.is_file():
            raise FolderError("is not a plain file", where=str(file), hint=other)
        if file.exists() and not (_is_marked(file) if overwrite is None else overwrite):
            hint = other if overwrite is None else f"{other}, or give `overwrite` to replace it"
            raise FolderError("the file exists already", where=str(file), hint=hint)
        folders = [Path(one) for one in inputs if overwrite and file.exists() and Path(one).is_dir()]
        if inside := next((one for one in folders if _real(file).is_relative_to(_real(one))), None):
            raise FolderError(f"is part of the input {inside}", where=str(file), hint=other)
    check_parent(file, option)


def check_parent(out: Path, option: str = "out") -> None:
    """Whether the folder that `out` is in, or will be in once it is made, can be written to."""
    other = f"choose another `{option}`"
    with writing_to(out, other):
        parent = next((one for one in out.absolute().parents if one.exists() or one.is_symlink()), out)
    if not parent.is_dir():
        what = "is a file" if parent.exists() else "is a link to nothing"
        raise FolderError(f"{what}, so nothing can be written into it", where=str(parent), hint=other)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise FolderError("the folder cannot be written to", where=str(parent), hint=other)


def refuse_inputs(out: Path, inputs: Iterable[str | Path], option: str = "out") -> None:
    """Refuses an output that would take the place of an input, however the paths are spelled or linked."""
    for given in inputs:
        with writing_to(out, f"choose another `{option}`"):
            path = Path(given)
            same = out.samefile(path) if out.exists() and path.exists() else _real(out) == _real(path)
            inside = out.is_dir() and _real(path).is_relative_to(_real(out))
        if same or inside:
            what = "is also an input, which would be overwritten" if same else f"has the input {path} in it"
            raise FolderError(what, where=str(out), hint=f"choose another `{option}`")


def write_output(file: Path, content: bytes, option: str) -> None:
    """Writes a file that `check_output` accepted, and the folders it is in."""
    with writing_to(file, f"run it again, or choose another `{option}`"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content)


def _real(path: Path) -> Path:
    """Without links and dots. A loop of links stays as it is: what uses the path says so."""
    return Path(os.path.realpath(path))


def _is_marked(file: Path) -> bool:
    with file.open("rb") as content:
        return MARK in content.read(MARKED)
