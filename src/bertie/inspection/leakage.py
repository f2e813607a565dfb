"""Does a corpus hold the texts of an evaluation? Texts as ids and a corpus enter, shares of lines and n-grams leave.

The n-grams of the texts are hashed into a table, and the corpus is read once against it: memory grows with the
evaluation, never with the corpus.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bertie.data.samples.source import Documents

GRAM = 13  # tokens
SHORTEST = 5  # shorter lines occur everywhere by chance
SHOWN = 3  # lines that are shown
BLOCK = 1 << 20  # tokens of the corpus that are hashed at once
FILTER_BITS = 20
FACTOR = np.uint64(0x9E3779B97F4A7C15)
BORDER = np.uint64(0xFFFFFFFF)  # between documents; no token has this id


@dataclass(frozen=True)
class Leakage:
    num_lines: int
    num_short: int  # lines too short to tell
    num_found_lines: int  # every n-gram of the line occurs
    num_grams: int  # different ones
    num_found_grams: int
    found_lines: tuple[int, ...]  # the numbers of the first lines found, from 0

    @property
    def line_share(self) -> float:
        return self.num_found_lines / max(1, self.num_lines - self.num_short)

    @property
    def gram_share(self) -> float:
        return self.num_found_grams / max(1, self.num_grams)


class GramTable:
    """The hashes of n-grams of one size, and which of them were met."""

    def __init__(self, size: int, hashes: np.ndarray):
        self.size = size
        self.hashes = np.unique(hashes)
        self.found = np.zeros(len(self.hashes), bool)
        # Most of the corpus is turned away by a table of bits that fits in the cache.
        self.likely = np.zeros(1 << FILTER_BITS, bool)
        self.likely[self._bits(self.hashes)] = True

    @staticmethod
    def _bits(hashes: np.ndarray) -> np.ndarray:
        return (hashes >> np.uint64(64 - FILTER_BITS)).astype(np.int64)

    def meet(self, ids: np.ndarray) -> None:
        hashes = hash_grams(ids, self.size)
        hashes = hashes[self.likely[self._bits(hashes)]]
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        self.found[places[self.hashes[places] == hashes]] = True

    def all_found(self, hashes: np.ndarray) -> bool:
        return bool(self.found[np.searchsorted(self.hashes, hashes)].all())


def measure_leakage(lines: Iterable[np.ndarray], documents: Documents) -> Leakage:
    """`lines` are the ids of the evaluation's texts, by the corpus's own tokenizer. A line of less than 13 tokens is
    found where it occurs as a whole."""
    rows = list(lines)
    hashes = [hash_grams(row, min(GRAM, len(row))) if len(row) >= SHORTEST else None for row in rows]
    by_size: dict[int, list[np.ndarray]] = {}
    for row, grams in zip(rows, hashes, strict=True):
        if grams is not None:
            by_size.setdefault(min(GRAM, len(row)), []).append(grams)
    tables = {size: GramTable(size, np.concatenate(grams)) for size, grams in by_size.items()}
    for block in read_blocks(documents):
        for table in tables.values():
            table.meet(block)
    found = [
        number
        for number, (row, grams) in enumerate(zip(rows, hashes, strict=True))
        if grams is not None and tables[min(GRAM, len(row))].all_found(grams)
    ]
    longest = tables.get(GRAM)
    return Leakage(
        num_lines=len(rows),
        num_short=sum(grams is None for grams in hashes),
        num_found_lines=len(found),
        num_grams=len(longest.hashes) if longest else 0,
        num_found_grams=int(longest.found.sum()) if longest else 0,
        found_lines=tuple(found[:SHOWN]),
    )


def hash_grams(ids: np.ndarray, size: int) -> np.ndarray:
    """[n - size + 1] a number of 64 bits for each run of `size` ids."""
    count = max(0, len(ids) - size + 1)
    values = ids.astype(np.uint64) + np.uint64(1)
    hashes = np.zeros(count, np.uint64)
    for offset in range(size):
        hashes = hashes * FACTOR + values[offset : offset + count]
    # The low bits of a product know only the low bits of its factors.
    hashes ^= hashes >> np.uint64(32)
    return hashes * FACTOR


def read_blocks(documents: Documents) -> Iterator[np.ndarray]:
    """The ids of all documents with borders between them, about `BLOCK` at a time."""
    border = np.array([BORDER])
    waiting: list[np.ndarray] = []
    size = 0
    for number in range(documents.num_documents):
        ids = documents.document(number).ids
        waiting += [ids.astype(np.uint64), border]
        size += len(ids)
        if size >= BLOCK:
            yield np.concatenate(waiting)
            waiting, size = [], 0
    if waiting:
        yield np.concatenate(waiting)
