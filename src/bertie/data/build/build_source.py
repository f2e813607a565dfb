"""Turns sources into slices of a size that suits the whole of them."""

from pathlib import Path

from bertie.reporting.events import OnEvent
from bertie.text.reading.documents import DocumentOptions, Slice, Sources, Texts, list_files, slices
from bertie.text.reading.lines import CODECS

# A kill costs the slices that were at work, so a small input wants small ones; a large one wants few files.
SMALLEST, LARGEST, WANTED_NUMBER = 4 << 20, 8 << 20, 64
COMPRESSION = 3  # roughly, of text


class Source:
    def __init__(self, sources: Sources, reading: DocumentOptions | None = None):
        self.sources: Texts | tuple[str, ...] = sources if isinstance(sources, Texts) else tuple(map(str, sources))
        self.reading = reading or DocumentOptions(slice_bytes=slice_bytes(self.sources))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.sources.name,) if isinstance(self.sources, Texts) else self.sources

    def slices(self, spool: Path, on_event: OnEvent) -> list[Slice]:
        """Standard input and texts in memory are copied into `spool` first."""
        return slices(self.sources, self.reading, spool=spool, on_event=on_event)


def slice_bytes(sources: Sources) -> int:
    """It depends on the files alone, so that a continued build cuts them as before."""
    return min(LARGEST, max(SMALLEST, text_bytes(sources) // WANTED_NUMBER))


def text_bytes(sources: Sources) -> int:
    """Roughly, the text in the files; of standard input and of texts in memory it is not known."""
    total = 0
    for path in [] if isinstance(sources, Texts) else list_files([name for name in sources if str(name) != "-"]):
        size = path.stat().st_size if path.exists() else 0
        total += size * (COMPRESSION if path.suffix.lower() in CODECS else 1)
    return total
