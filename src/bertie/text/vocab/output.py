"""Checks that a vocabulary folder can be written before the work that makes it, and writes it whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertie.disk import atomic_folder, check_parent
from bertie.errors import FolderError

# A folder with none of these was not written by bertie, so it is not replaced.
SIGNS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")
OTHER_PLACE = "choose another `out`"


def check_out(out: Path, overwrite: bool) -> None:
    """Refuses before the work a result that could not be written."""
    check_parent(out)
    if not out.exists():
        return
    if not overwrite:
        hint = "choose another `out`, or give `overwrite` to replace it"
        raise FolderError("exists already", where=str(out), hint=hint)
    if not out.is_dir() or (any(out.iterdir()) and not any((out / name).exists() for name in SIGNS)):
        raise FolderError(
            "is not a vocabulary or model folder, so it is not replaced", where=str(out), hint=OTHER_PLACE
        )


@contextmanager
def new_folder(out: Path, overwrite: bool) -> Iterator[Path]:
    """The folder to write into. It takes its place, and that of an old one, when the block ends well."""
    check_out(out, overwrite)
    with atomic_folder(out) as folder:
        yield folder
