"""Which texts were there before. Enters: the sorted hashes and the signatures of all parts, on disk. Leaves: drops, on
disk by part. Memory is bounded: hashes come range by range, signatures band by band.

The first occurrence in the order of the parts stays. A near copy goes only when a text that stays is like it, so that
a chain of small changes does not eat its end.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertie.data.duplicates import BAND, NUM_BANDS, THRESHOLD, band_keys, candidate_pairs, similarity

# A place is a part and two numbers in it: the document, and the paragraph or WHOLE.
WHOLE = 0xFFFFFFFF
HASHES = np.dtype([("hash", "<u8"), ("document", "<u4"), ("paragraph", "<u4")])
DROPS = np.dtype([("part", "<u4"), ("document", "<u4"), ("paragraph", "<u4"), ("reason", "u1")])
PLACES = np.dtype([("document", "<u4"), ("paragraph", "<u4")])
REASONS = ("duplicate documents", "near-duplicate documents", "duplicate paragraphs", "near-duplicate paragraphs")

ITEMS_AT_ONCE = 500_000
PAIRS_AT_ONCE = 20_000


def mapped(path: Path) -> np.ndarray:
    """An array on disk. It is to be copied from and let go: thousands of open maps are too many files for a process.

    An empty array cannot be mapped, and a small one need not be. Sorted hashes (.u64) have no header, so that they can
    be written before their number is known.
    """
    size = path.stat().st_size
    if path.suffix == ".u64":
        return np.memmap(path, "<u8", mode="r") if size else np.zeros(0, np.uint64)
    array: np.ndarray = np.load(path, mmap_mode="r") if size > 1024 else np.load(path)
    return array


class DropLog:
    """Drops in files that are each sorted by part, so that a part finds its own without reading the rest."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, drops: np.ndarray) -> None:
        if len(drops):
            np.save(self.folder / f"{name}.npy", np.sort(drops, order=["part", "document", "paragraph"]))

    def remove(self, prefix: str) -> None:
        for path in self.folder.glob(f"{prefix}-*.npy"):
            path.unlink()

    def of_part(self, part: int, reasons: Sequence[int] | None = None) -> np.ndarray:
        found = [np.zeros(0, DROPS)]
        for path in sorted(self.folder.glob("*.npy")):
            drops = mapped(path)
            start, end = np.searchsorted(drops["part"], [part, part + 1])
            found.append(np.array(drops[start:end]))
        drops = np.concatenate(found)
        return drops if reasons is None else drops[np.isin(drops["reason"], reasons)]


def count_drops(log: DropLog, reason: int) -> int:
    return sum(int((mapped(path)["reason"] == reason).sum()) for path in log.folder.glob("*.npy"))


def find_exact(parts: Sequence[Path], old: Sequence[Path], log: DropLog, reason: int, kept: Path) -> None:
    """`parts` are files of HASHES sorted by hash, `old` of the sorted hashes of what a corpus has already. What stays
    goes into the file `kept` as sorted hashes."""
    dropped = (0, 1) if reason > 1 else ()  # the paragraphs of dropped documents are nobody's first occurrence
    total = sum(len(mapped(path)) for path in (*parts, *old))
    num_ranges = max(1, -(-total // ITEMS_AT_ONCE))
    bounds = [(index << 64) // num_ranges for index in range(num_ranges + 1)]
    with kept.open("wb") as stream:
        for index, (low, high) in enumerate(itertools.pairwise(bounds)):
            rows, owners = [np.zeros(0, HASHES)], [np.zeros(0, np.uint32)]
            for number, path in enumerate(parts):
                hashes = mapped(path)
                found = np.array(hashes[between(hashes["hash"], low, high)])
                if dropped and len(found):
                    found = found[~np.isin(found["document"], log.of_part(number, dropped)["document"])]
                rows.append(found)
                owners.append(np.full(len(found), number, np.uint32))
            row, owner = np.concatenate(rows), np.concatenate(owners)
            order = np.lexsort((row["paragraph"], row["document"], owner, row["hash"]))
            row, owner = row[order], owner[order]
            repeated = np.zeros(len(row), bool)
            repeated[1:] = row["hash"][1:] == row["hash"][:-1]
            for path in old:
                hashes = mapped(path)
                repeated |= np.isin(row["hash"], np.array(hashes[between(hashes, low, high)]))
            log.write(f"{reason}-{index:06d}", drops_of(owner[repeated], row[repeated], reason))
            stream.write(row["hash"][~repeated].tobytes())


def between(hashes: np.ndarray, low: int, high: int) -> slice:
    start = int(np.searchsorted(hashes, np.uint64(low)))
    end = len(hashes) if high >= 1 << 64 else int(np.searchsorted(hashes, np.uint64(high)))
    return slice(start, end)


def drops_of(owner: np.ndarray, place: np.ndarray, reason: int) -> np.ndarray:
    drops = np.zeros(len(owner), DROPS)
    drops["part"], drops["reason"] = owner, reason
    drops["document"], drops["paragraph"] = place["document"], place["paragraph"]
    return drops


@dataclass(frozen=True)
class Signed:
    """The signatures of one part, or of what a corpus has already (then `places` is None: all of it stays)."""

    bands: Path  # [NUM_BANDS, n, BAND] uint8, so that one band lies together
    places: Path | None  # [n] PLACES
    alive: np.ndarray  # [n] bool, False for what was dropped before


def find_near(signed: Sequence[Signed], first_part: int, log: DropLog, reason: int, work: Path) -> list[np.ndarray]:
    """Drops near copies; what stays is told as [n] bool for each of `signed`. `first_part` of them are old."""
    begins = np.concatenate([[0], np.cumsum([len(one.alive) for one in signed])]).astype(np.int64)
    stays = np.concatenate([one.alive for one in signed]) if signed else np.zeros(0, bool)
    work.mkdir(parents=True, exist_ok=True)
    for path in work.glob("*.npy"):
        path.unlink()
    num_ranges = max(1, -(-int(begins[-1]) // ITEMS_AT_ONCE))
    files = []
    for band in range(NUM_BANDS):
        for index in range(num_ranges):
            keys, items = band_items(signed, begins, band, num_ranges, index)
            edges = np.concatenate([np.zeros((0, 2), np.int64), *alike(signed, begins, *candidate_pairs(keys, items))])
            edges = edges[edges[:, 1] >= begins[first_part]]  # old ones were compared when they came
            if len(edges):
                files.append(work / f"{band:03d}-{index:06d}.npy")
                np.save(files[-1], edges[np.lexsort((edges[:, 0], edges[:, 1]))])
    for earlier, later in edges_in_order(files, int(begins[-1])):
        if stays[earlier]:
            stays[later] = False
    kept = [stays[start:end] for start, end in itertools.pairwise(begins)]
    waiting: list[np.ndarray] = []
    for number, (one, rows) in enumerate(zip(signed[first_part:], kept[first_part:], strict=True)):
        gone = np.flatnonzero(one.alive & ~rows)
        assert one.places is not None
        waiting.append(drops_of(np.full(len(gone), number, np.uint32), mapped(one.places)[gone], reason))
        if sum(map(len, waiting)) > ITEMS_AT_ONCE or one is signed[-1]:
            log.write(f"{reason}-{number:06d}", np.concatenate(waiting))
            waiting.clear()
    return kept


def band_items(
    signed: Sequence[Signed], begins: np.ndarray, band: int, num_ranges: int, index: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys and item numbers of one band, as far as they are of this range of keys."""
    keys, items = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for begin, one in zip(begins, signed, strict=False):
        found = band_keys(mapped(one.bands)[band])
        chosen = one.alive
        if num_ranges > 1:
            spread = (found * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
            chosen = chosen & (spread % np.uint64(num_ranges) == index)
        keys.append(found[chosen])
        items.append(begin + np.flatnonzero(chosen))
    return np.concatenate(keys), np.concatenate(items)


def alike(signed: Sequence[Signed], begins: np.ndarray, earlier: np.ndarray, later: np.ndarray) -> Iterator[np.ndarray]:
    """The pairs [n, 2] whose estimated similarity reaches the threshold."""
    for start in range(0, len(earlier), PAIRS_AT_ONCE):
        first, second = earlier[start : start + PAIRS_AT_ONCE], later[start : start + PAIRS_AT_ONCE]
        close = similarity(signature_rows(signed, begins, first), signature_rows(signed, begins, second)) >= THRESHOLD
        yield np.stack([first[close], second[close]], axis=1)


def signature_rows(signed: Sequence[Signed], begins: np.ndarray, items: np.ndarray) -> np.ndarray:
    """[n, NUM_BANDS * BAND] uint8"""
    rows = np.empty((len(items), NUM_BANDS * BAND), np.uint8)
    owner = np.searchsorted(begins, items, side="right") - 1
    for number in np.unique(owner):
        at = np.flatnonzero(owner == number)
        found = mapped(signed[number].bands)[:, items[at] - begins[number], :]  # [NUM_BANDS, n, BAND]
        rows[at] = found.transpose(1, 0, 2).reshape(len(at), -1)
    return rows


def edges_in_order(files: Sequence[Path], num_items: int, at_once: int = 50_000) -> Iterator[tuple[int, int]]:
    """All pairs by their later item, each once."""
    for start in range(0, num_items if files else 0, at_once):
        found = []
        for edges in map(mapped, files):
            first, last = np.searchsorted(edges[:, 1], [start, start + at_once])
            found.append(np.array(edges[first:last, ::-1]))
        for later, earlier in np.unique(np.concatenate(found), axis=0).tolist():
            yield earlier, later
