"""Masked rows in one file for all contenders; nothing but numpy, as each has an environment of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Instance = dict[str, np.ndarray]
"""A row's fields under bertie's names. `tokens` are what the model reads, `masked` places in the row, `masked_targets`
what stood there; where a sample has them also `segments`, `partner`, `documents`; for a generator `gaps` and `dice`."""

LENGTHS = ":lengths"


def write_instances(path: Path, rows: Sequence[Instance]) -> None:
    """Flat, each field with the lengths of its rows; one that has a single value a row has none."""
    arrays: dict[str, Any] = {}
    for name in rows[0]:
        column = [row[name] for row in rows]
        arrays[name] = np.concatenate([np.atleast_1d(values) for values in column])
        if column[0].ndim:
            arrays[name + LENGTHS] = np.array([len(values) for values in column])
    np.savez(path, **arrays)


def read_instances(path: Path | str) -> list[Instance]:
    with np.load(path) as arrays:
        columns = {name: _split(arrays, name) for name in arrays if not name.endswith(LENGTHS)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _split(arrays: Mapping[str, np.ndarray], name: str) -> Sequence[np.ndarray] | np.ndarray:
    """A field, row by row."""
    lengths = arrays.get(name + LENGTHS)
    return arrays[name] if lengths is None else np.split(arrays[name], np.cumsum(lengths)[:-1])
