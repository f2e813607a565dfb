"""Sorts any number of rows into ascending ranges of their key, few enough at once for the memory. What does not fit is
on disk in between: it is written and read once for each factor of FAN_OUT in size."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

ROWS_AT_ONCE = 500_000
FAN_OUT = 64  # files that are open at once


class Spilled:
    """A file of rows whose keys lie from `first` to `last`."""

    def __init__(self, path: Path):
        self.path, self.first, self.last = path, -1, -1

    def note(self, keys: np.ndarray) -> None:
        low, high = int(keys.min()), int(keys.max())
        self.first = low if self.first < 0 else min(low, self.first)
        self.last = max(high, self.last)


def by_ranges(blocks: Iterable[np.ndarray], key: str, end: int, folder: Path, start: int = 0) -> Iterator[np.ndarray]:
    """Blocks with all rows of a range of keys, the ranges in ascending order from `start` to `end`. Rows of an equal
    key come together, in the order in which they came; a key of very many rows is one block. `folder` is emptied."""
    coming = iter(blocks)
    begun, num_rows = [], 0
    for block in coming:
        begun.append(block)
        num_rows += len(block)
        if num_rows > ROWS_AT_ONCE and end - start > 1:
            break
    else:
        if num_rows:
            yield np.concatenate(begun)
        return
    dtype = begun[0].dtype
    for spilled in spread(chain(let_go(begun), coming), key, start, end, folder):
        rows, below = pieces(spilled.path, dtype), spilled.path.with_suffix("")
        yield from by_ranges(rows, key, spilled.last + 1, below, spilled.first)
        spilled.path.unlink()
    shutil.rmtree(folder)


def spread(blocks: Iterable[np.ndarray], key: str, start: int, end: int, folder: Path) -> list[Spilled]:
    """FAN_OUT files at most, each with an equal share of the keys from `start` to `end`."""
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(parents=True)
    width = -(-(end - start) // FAN_OUT)
    spilled = [Spilled(folder / f"{number:02d}.rows") for number in range(FAN_OUT)]
    with ExitStack() as stack:
        files = [stack.enter_context(one.path.open("wb")) for one in spilled]
        for block in gathered(blocks):
            place = (block[key] - start) // width
            order = np.argsort(place, kind="stable")
            ends = np.searchsorted(place[order], np.arange(FAN_OUT + 1)).tolist()
            for one, file, (first, last) in zip(spilled, files, pairwise(ends), strict=True):
                if last > first:
                    rows = block[order[first:last]]
                    one.note(rows[key])
                    file.write(rows.tobytes())
    return [one for one in spilled if one.first >= 0]


def gathered(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The same rows in fewer blocks, so that each file gets many at a time."""
    waiting: list[np.ndarray] = []
    num_waiting = 0
    for block in blocks:
        waiting.append(block)
        num_waiting += len(block)
        if num_waiting >= ROWS_AT_ONCE // 4:
            yield np.concatenate(waiting)
            waiting, num_waiting = [], 0
    if waiting:
        yield np.concatenate(waiting)


def let_go(blocks: list[np.ndarray]) -> Iterator[np.ndarray]:
    """In their order; a block that was taken is not kept in memory here."""
    blocks.reverse()
    while blocks:
        yield blocks.pop()


def pieces(path: Path, dtype: np.dtype, start: int = 0, end: int | None = None) -> Iterator[np.ndarray]:
    """The rows `start` to `end` of a file, as many at once as the memory is meant for. Nothing stays mapped: mapped
    pages would count as ours until the end."""
    end = path.stat().st_size // dtype.itemsize if end is None else end
    for begin in range(start, end, ROWS_AT_ONCE):
        yield np.fromfile(path, dtype, min(ROWS_AT_ONCE, end - begin), offset=begin * dtype.itemsize)
