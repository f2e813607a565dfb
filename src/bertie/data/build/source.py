"""Files, folders and globs in, slices of a size that suits the whole of them out."""

from pathlib import Path

from bertie.text.documents import DocumentOptions, Slice, list_files, slices
from bertie.text.lines import CODECS

# A kill costs the slices that were at work, so a small input wants small ones; a large one wants few files.
SMALLEST, LARGEST, WANTED_NUMBER = 4 << 20, 8 << 20, 64
COMPRESSION = 3  # roughly, of text


class Source:
    def __init__(self, names: tuple[str, ...], reading: DocumentOptions | None = None):
        self.names = names
        self.reading = reading or DocumentOptions(slice_bytes=slice_bytes(names))

    def slices(self, spool: Path, notices: list[str]) -> list[Slice]:
        """Standard input is copied into `spool` first."""
        return slices(self.names, self.reading, spool=spool, notices=notices)


def slice_bytes(names: tuple[str, ...]) -> int:
    """It depends on the files alone, so that a build that goes on cuts them as before."""
    return min(LARGEST, max(SMALLEST, text_bytes(names) // WANTED_NUMBER))


def text_bytes(names: tuple[str, ...]) -> int:
    """Roughly, the text in the files."""
    total = 0
    for path in list_files([name for name in names if name != "-"]):
        size = path.stat().st_size if path.exists() else 0
        total += size * (COMPRESSION if path.suffix.lower() in CODECS else 1)
    return total
