"""Finds the texts that occurred before: turns the sorted hashes and the signatures of all parts into drops, all on
disk, by part. Memory is bounded, and what is read grows with the text: every file is read from its beginning to its end
a fixed number of times, and what must meet is brought together by `spilling`.

The first occurrence in the order of the parts stays. A near copy goes only when a text that stays is like it, so that
a chain of small changes does not remove its end.
"""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bertie.data.build.spilling import by_ranges, pieces
from bertie.data.duplicates import BAND, NUM_BANDS, THRESHOLD, band_keys, candidate_pairs, similarity
from bertie.disk import atomic_file

# A place is a part and two numbers in it: the document, and the paragraph or WHOLE.
WHOLE = 0xFFFFFFFF
HASHES = np.dtype([("hash", "<u8"), ("document", "<u4"), ("paragraph", "<u4")])
OWNED = np.dtype([*HASHES.descr, ("part", "<u4")])
DROPS = np.dtype([("part", "<u4"), ("document", "<u4"), ("paragraph", "<u4"), ("reason", "u1")])
PLACES = np.dtype([("document", "<u4"), ("paragraph", "<u4")])
REASONS = ("duplicate documents", "near-duplicate documents", "duplicate paragraphs", "near-duplicate paragraphs")

OLD = np.dtype("<u8")  # sorted hashes without a header, so that they can be written before their number is known
KEYS = np.dtype([("key", "<u8"), ("item", "<i8")])
PAIRS = np.dtype([("earlier", "<i8"), ("later", "<i8")])
SIGNATURE = NUM_BANDS * BAND  # bytes
SIGNATURES_AT_ONCE = 20_000
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different keys stay different


def mapped(path: Path) -> np.ndarray:
    """An array on disk. It is to be copied from and let go: thousands of open maps are too many files for a process,
    and the pages that were read count as its memory. An empty array cannot be mapped, and a small one need not be."""
    array: np.ndarray = np.load(path, mmap_mode="r" if path.stat().st_size > 1024 else None)
    return array


class DropLog:
    """Drops in one file for each reason, sorted by part, so that a part finds its own without reading the rest."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, reason: int) -> Path:
        return self.folder / f"{reason}.drops"

    def write(self, reason: int, num_parts: int, drops: Iterable[np.ndarray]) -> None:
        """All drops of a reason, in any order; an earlier file of it is replaced when they are complete."""
        with atomic_file(self.path(reason)) as file:
            for block in by_ranges(drops, "part", num_parts, self.folder / "by-part"):
                order = np.lexsort((block["paragraph"], block["document"], block["part"]))
                file.write(block[order].tobytes())

    def of_part(self, part: int, reasons: Sequence[int] | None = None) -> np.ndarray:
        found = [np.zeros(0, DROPS)]
        for reason in range(len(REASONS)) if reasons is None else reasons:
            if self.count(reason):
                drops = np.memmap(self.path(reason), DROPS, mode="r")
                # Not numpy's search: it would copy the whole column first.
                start, end = (bisect_left(drops, one, key=lambda row: row["part"]) for one in (part, part + 1))
                found.append(np.array(drops[start:end]))
        return np.concatenate(found)

    def count(self, reason: int) -> int:
        return self.path(reason).stat().st_size // DROPS.itemsize if self.path(reason).exists() else 0

    def remove(self, reason: int) -> None:
        self.path(reason).unlink(missing_ok=True)


def find_exact(parts: Sequence[Path], old: Sequence[Path], log: DropLog, reason: int, kept: Path) -> None:
    """`parts` are files of HASHES sorted by hash, `old` of the sorted hashes of what a corpus has already. What stays
    goes into the file `kept` as sorted hashes."""
    with kept.open("wb") as file:
        log.write(reason, len(parts), exact_drops(parts, old, log, reason, file))
        file.flush()
        os.fsync(file.fileno())


def exact_drops(
    parts: Sequence[Path], old: Sequence[Path], log: DropLog, reason: int, kept: BinaryIO
) -> Iterator[np.ndarray]:
    for row in by_ranges(owned_hashes(parts, log, reason), "hash", 1 << 64, log.folder / "by-hash"):
        row = row[np.lexsort((row["paragraph"], row["document"], row["part"], row["hash"]))]
        hashes = row["hash"].copy()
        repeated = np.zeros(len(row), bool)
        repeated[1:] = hashes[1:] == hashes[:-1]
        for path in old:
            for known in known_between(path, hashes[0], hashes[-1]):
                at = np.searchsorted(hashes, known)  # the first of equal ones; the others are repeated anyway
                repeated[at[hashes[at] == known]] = True
        yield drops_of(row["part"][repeated], row[repeated], reason)
        kept.write(hashes[~repeated].tobytes())


def owned_hashes(parts: Sequence[Path], log: DropLog, reason: int) -> Iterator[np.ndarray]:
    """OWNED rows, part by part, without those of dropped documents: they are nobody's first occurrence."""
    for number, path in enumerate(parts):
        hashes: np.ndarray = np.load(path)
        if reason > 1:
            hashes = hashes[~np.isin(hashes["document"], log.of_part(number, (0, 1))["document"])]
        rows = np.zeros(len(hashes), OWNED)
        for name in HASHES.names or ():
            rows[name] = hashes[name]
        rows["part"] = number
        yield rows


def known_between(path: Path, low: np.uint64, high: np.uint64) -> Iterator[np.ndarray]:
    """The sorted hashes of a file from `low` to `high`."""
    if not path.stat().st_size:
        return
    hashes = np.memmap(path, OLD, mode="r")
    start, end = int(np.searchsorted(hashes, low)), int(np.searchsorted(hashes, high, side="right"))
    del hashes
    yield from pieces(path, OLD, start, end)


def drops_of(part: np.ndarray, place: np.ndarray, reason: int) -> np.ndarray:
    drops = np.zeros(len(part), DROPS)
    drops["part"], drops["reason"] = part, reason
    drops["document"], drops["paragraph"] = place["document"], place["paragraph"]
    return drops


@dataclass(frozen=True)
class Signed:
    """The signatures of one part, or of what a corpus has already (then `places` is None: all of it stays)."""

    bands: Path  # [NUM_BANDS, n, BAND] uint8, so that one band lies together
    places: Path | None  # [n] PLACES
    alive: np.ndarray  # [n] bool, False for what was dropped before

    def slices(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The bands [NUM_BANDS, m, BAND] of some items after another."""
        for start in range(0, len(self.alive), SIGNATURES_AT_ONCE):
            chosen = slice(start, start + SIGNATURES_AT_ONCE)
            yield chosen, mapped(self.bands)[:, chosen]


def find_near(signed: Sequence[Signed], first_part: int, log: DropLog, reason: int, work: Path) -> list[np.ndarray]:
    """Drops near copies; returns what stays as [n] bool for each of `signed`. `first_part` of them are old.

    Items are numbered through all of `signed`.
    """
    begins = np.concatenate([[0], np.cumsum([len(one.alive) for one in signed])]).astype(np.int64)
    stays = np.concatenate([np.zeros(0, bool), *(one.alive for one in signed)])
    work.mkdir(parents=True, exist_ok=True)
    with (work / "signatures").open("w+b") as rows:
        write_rows(signed, rows)
        # Old ones were compared when they came.
        pairs = (found[found["later"] >= begins[first_part]] for found in all_pairs(signed, begins, work))
        for block in by_ranges(pairs, "later", len(stays), work / "by-later"):
            drop_later(once_each(block), stays, rows)
    kept = [stays[start:end] for start, end in pairwise(begins)]
    new = list(zip(signed[first_part:], kept[first_part:], strict=True))
    log.write(reason, len(new), (near_drops(number, *one, reason) for number, one in enumerate(new)))
    (work / "signatures").unlink()
    return kept


def write_rows(signed: Sequence[Signed], rows: BinaryIO) -> None:
    """All signatures, each in one place: [items, SIGNATURE] uint8."""
    for one in signed:
        for _, bands in one.slices():
            rows.write(bands.transpose(1, 0, 2).tobytes())
    rows.flush()


def all_pairs(signed: Sequence[Signed], begins: np.ndarray, work: Path) -> Iterator[np.ndarray]:
    """PAIRS of items that agree in some band; one that agrees in several comes several times."""
    for band in range(NUM_BANDS):
        for found in by_ranges(keys_of(signed, begins, band), "key", 1 << 64, work / "by-key"):
            earlier, later = candidate_pairs(found["key"], found["item"])
            pairs = np.zeros(len(earlier), PAIRS)
            pairs["earlier"], pairs["later"] = earlier, later
            yield pairs


def keys_of(signed: Sequence[Signed], begins: np.ndarray, band: int) -> Iterator[np.ndarray]:
    """KEYS of one band, evenly over all 64 bits."""
    for begin, one in zip(begins[:-1], signed, strict=True):
        for chosen, bands in one.slices():
            alive = np.flatnonzero(one.alive[chosen])
            keys = np.zeros(len(alive), KEYS)
            keys["key"] = band_keys(bands[band])[alive] * _SPREAD
            keys["item"] = begin + chosen.start + alive
            yield keys


def once_each(pairs: np.ndarray) -> np.ndarray:
    """By the later item, then the earlier one."""
    pairs = pairs[np.lexsort((pairs["earlier"], pairs["later"]))]
    new = np.ones(len(pairs), bool)
    new[1:] = pairs[1:] != pairs[:-1]
    return pairs[new]


def drop_later(pairs: np.ndarray, stays: np.ndarray, rows: BinaryIO) -> None:
    """Of each pair whose estimated similarity reaches the threshold the later one goes, if the earlier one stays."""
    for start in range(0, len(pairs), SIGNATURES_AT_ONCE):
        some = pairs[start : start + SIGNATURES_AT_ONCE]
        some = some[stays[some["earlier"]] & stays[some["later"]]]  # what went already decides nothing more
        first, second = read_rows(rows, some["earlier"]), read_rows(rows, some["later"])
        some = some[similarity(first, second) >= THRESHOLD] if len(some) else some
        for earlier, later in some.tolist():
            if stays[earlier]:
                stays[later] = False


def read_rows(rows: BinaryIO, items: np.ndarray) -> np.ndarray:
    """[n, SIGNATURE] uint8"""
    wanted, place = np.unique(items, return_inverse=True)
    found = b"".join(os.pread(rows.fileno(), SIGNATURE, item * SIGNATURE) for item in wanted.tolist())
    return np.frombuffer(found, np.uint8).reshape(-1, SIGNATURE)[place]


def near_drops(number: int, one: Signed, stays: np.ndarray, reason: int) -> np.ndarray:
    gone = np.flatnonzero(one.alive & ~stays)
    assert one.places is not None
    return drops_of(np.full(len(gone), number, np.uint32), mapped(one.places)[gone], reason)
