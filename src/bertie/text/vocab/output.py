"""A folder that appears whole or not at all: it is written beside its place and then moved there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from bertie.errors import FolderError

# A folder with none of these was not written by bertie, so it is not replaced.
SIGNS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")


def check_out(out: Path, overwrite: bool) -> None:
    """Say before the work that its result would have no place."""
    if not out.exists():
        return
    if not overwrite:
        raise FolderError("exists already", where=str(out), hint="give another --out, or --overwrite to replace it")
    if not out.is_dir() or (any(out.iterdir()) and not any((out / name).exists() for name in SIGNS)):
        raise FolderError(
            "is not a vocabulary or model folder, so it is not replaced", where=str(out), hint="give another --out"
        )


@contextmanager
def new_folder(out: Path, overwrite: bool) -> Iterator[Path]:
    """The folder to write into. It takes its place, and that of an old one, when the block ends well."""
    check_out(out, overwrite)
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    new, old = work / "new", work / "old"
    try:
        new.mkdir()
        yield new
        if out.exists():
            out.rename(old)
        new.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
