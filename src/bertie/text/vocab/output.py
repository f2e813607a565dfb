"""A folder that appears whole or not at all: it is written beside its place and then moved there. A place that cannot
be written to is told as one sentence, before the work where that can be known."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from bertie.errors import FolderError

# A folder with none of these was not written by bertie, so it is not replaced.
SIGNS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")
OTHER_PLACE = "give another --out"


def check_out(out: Path, overwrite: bool) -> None:
    """Say before the work that its result would have no place."""
    check_parent(out)
    if not out.exists():
        return
    if not overwrite:
        raise FolderError("exists already", where=str(out), hint="give another --out, or --overwrite to replace it")
    if not out.is_dir() or (any(out.iterdir()) and not any((out / name).exists() for name in SIGNS)):
        raise FolderError(
            "is not a vocabulary or model folder, so it is not replaced", where=str(out), hint=OTHER_PLACE
        )


def check_parent(out: Path) -> None:
    """Whether the folder that `out` stands in, or is to stand in once it is made, can be written to."""
    with writing(out):
        parent = next((folder for folder in out.absolute().parents if folder.exists()), out)
    if not parent.is_dir():
        raise FolderError("is a file, so there is no place for a folder in it", where=str(parent), hint=OTHER_PLACE)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise FolderError("the folder cannot be written to", where=str(parent), hint=OTHER_PLACE)


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Turns a failed write into one sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        hint = f"{'free some space' if full else 'mend that'} and run the same command again, or give another --out"
        raise FolderError(what, where=str(out), hint=hint) from error


@contextmanager
def new_folder(out: Path, overwrite: bool) -> Iterator[Path]:
    """The folder to write into. It takes its place, and that of an old one, when the block ends well."""
    check_out(out, overwrite)
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        work = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    new, old = work / "new", work / "old"
    try:
        with writing(out):
            new.mkdir()
            yield new
            if out.exists():
                out.rename(old)
            new.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
