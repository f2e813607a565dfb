"""Turns slices of the input, in a fixed order, into works whose keys depend neither on the number of workers nor on
when a build was killed.

A slice is read by the worker that gets it. One that is far larger than slices are, since its file cannot be read from
the middle, is read here, once, and its documents are handed out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bertie.data.build.journal import Journal
from bertie.text.reading.documents import Document, Slice

PART_BYTES = 4 << 20  # of text: little enough that a kill costs little
LARGEST_SLICE = 32 << 20  # what a worker turns into one shard, in memory


@dataclass(frozen=True)
class Work:
    key: str
    source: Slice | list[Document]
    num_bytes: int  # of text, roughly

    def documents(self) -> Iterable[Document]:
        return self.source if isinstance(self.source, list) else self.source.read()


def works(slices: Sequence[Slice], journal: Journal, stage: str) -> Iterator[Work]:
    """What is still to be done in a stage."""
    for number, one in enumerate(slices):
        begun = f"{number:06d}"
        if one.size <= LARGEST_SLICE:
            if journal.done(stage, f"{begun}-000000") is None:
                yield Work(f"{begun}-000000", one, one.size)
            continue
        whole = journal.done(f"{stage} of slice", begun)
        if whole and all(journal.done(stage, f"{begun}-{part:06d}") is not None for part in range(whole["parts"])):
            continue
        part = -1
        for part, (documents, num_bytes) in enumerate(cut(one.read(), PART_BYTES)):
            if journal.done(stage, f"{begun}-{part:06d}") is None:
                yield Work(f"{begun}-{part:06d}", documents, num_bytes)
        journal.note(f"{stage} of slice", begun, {"parts": part + 1})


def num_parts(slices: Sequence[Slice]) -> int:
    """About how many works there are, at least one."""
    return max(1, sum(1 if one.size <= LARGEST_SLICE else one.size // PART_BYTES for one in slices))


def cut(documents: Iterable[Document], part_bytes: int) -> Iterator[tuple[list[Document], int]]:
    """Lists of documents with about so much text in UTF-8, and how much it is."""
    waiting: list[Document] = []
    num_bytes = 0
    for document in documents:
        waiting.append(document)
        num_bytes += len(document.text.encode("utf-8", "surrogatepass"))
        if num_bytes >= part_bytes:
            yield waiting, num_bytes
            waiting, num_bytes = [], 0
    if waiting:
        yield waiting, num_bytes
