"""Keeps samples that were made once in one Arrow IPC file, and gives them back by number.

These are static masks: what an objective did to a sample is written down, `duplicates` times with another mask
each, and no longer drawn when it is read. The file is mapped, not loaded, and is there whole or not at all.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bertie.batch import Places, Sample
from bertie.disk import atomic_file
from bertie.errors import FolderError, InputError

ROWS = 1000  # samples of one record batch
ABOUT = b"bertie"  # the key of our facts in the file's schema
VERSION = 1


def write_frozen(path: Path, samples: Iterable[Sample], largest: int, about: Mapping[str, Any]) -> int:
    """Write all samples and return their number. No value is above `largest`; `about` says how they were made."""
    waiting = iter(samples)
    first = list(islice(waiting, ROWS))
    if not first:
        raise InputError("there is no sample to freeze")
    schema = _schema(first[0], largest, about)
    num_samples = 0
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        for rows in _blocks(first, waiting):
            writer.write_batch(pa.record_batch([_column(field, rows) for field in schema], schema=schema))
            num_samples += len(rows)
    return num_samples


def _blocks(first: list[Sample], rest: Iterator[Sample]) -> Iterator[list[Sample]]:
    block = first
    while block:
        yield block
        block = list(islice(rest, ROWS))


def _schema(sample: Sample, largest: int, about: Mapping[str, Any]) -> pa.Schema:
    numbers = pa.int16() if largest < 1 << 15 else pa.int32()
    fields, places = [], {}
    for name, value in sample.items():
        if isinstance(value, Places):
            places[name] = value.into
        array = np.asarray(_values(value))
        shares = array.dtype.kind == "f"  # such as a generator's dice
        kind = pa.large_list(pa.float32() if shares else numbers) if array.ndim else pa.int64()
        fields.append(pa.field(name, kind, nullable=False))
    facts = {"version": VERSION, "places": places, "about": dict(about)}
    return pa.schema(fields, metadata={ABOUT: json.dumps(facts)})


def _column(field: pa.Field, rows: list[Sample]) -> pa.Array:
    values = [np.asarray(_values(row[field.name])) for row in rows]
    if not pa.types.is_large_list(field.type):
        return pa.array([int(value) for value in values], field.type)
    offsets = np.cumsum([0, *(len(value) for value in values)])
    flat = np.concatenate(values)
    numbers = field.type.value_type.to_pandas_dtype()
    whole = pa.types.is_integer(field.type.value_type)
    if whole and flat.dtype.kind == "f":
        raise ValueError(f"the field {field.name!r} is not of whole numbers in all samples")
    if whole and len(flat) and (flat.max() > np.iinfo(numbers).max or flat.min() < np.iinfo(numbers).min):
        raise ValueError(f"the field {field.name!r} has a value that {field.type.value_type} cannot hold")
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat.astype(numbers)), type=field.type)


def _values(value: np.ndarray | Places) -> np.ndarray:
    return value.positions if isinstance(value, Places) else value


class Frozen:
    """The samples of a file. They stand for numbered samples of any shape; seed and epoch change nothing."""

    shuffled = True

    def __init__(self, path: str | Path):
        self.path = Path(path)
        try:
            self._file = pa.ipc.open_file(pa.memory_map(str(self.path)))
            facts = json.loads((self._file.schema.metadata or {})[ABOUT])
            self.places: dict[str, str] = facts["places"]
            self.about: dict[str, Any] = facts["about"]
            batches = range(self._file.num_record_batches)
            self._ends = np.cumsum([self._file.get_batch(number).num_rows for number in batches])
            self._lengths = np.concatenate([self._token_counts(number) for number in batches])
        except FileNotFoundError:
            raise FolderError("no such file", where=str(path), hint="make one with bertie corpus freeze") from None
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            hint = "make it again with bertie corpus freeze"
            raise FolderError(
                f"not a file of frozen samples, or a broken one ({error})", where=str(path), hint=hint
            ) from None
        self._columns = lru_cache(8)(self._read_columns)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)

    @property
    def num_samples(self) -> int:
        return int(self._ends[-1])

    @property
    def longest(self) -> int:
        return int(self._lengths.max())

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self._lengths[indices].astype(np.int64)

    def sample(self, seed: int, epoch: int, index: int) -> Sample:
        if not 0 <= index < self.num_samples:
            raise IndexError(f"sample {index} of {self.num_samples:,}")
        number = int(np.searchsorted(self._ends, index, side="right"))
        row = index - (int(self._ends[number - 1]) if number else 0)
        sample: dict[str, np.ndarray | Places] = {}
        for name, (offsets, values) in self._columns(number).items():
            if offsets is None:
                sample[name] = np.asarray(values[row])
                continue
            found = values[offsets[row] : offsets[row + 1]]
            found = found if found.dtype.kind == "f" else found.astype(np.int64)
            sample[name] = Places(self.places[name], found) if name in self.places else found
        return sample

    def _token_counts(self, number: int) -> np.ndarray:
        return np.diff(self._file.get_batch(number).column("tokens").offsets.to_numpy()).astype(np.int32)

    def _read_columns(self, number: int) -> dict[str, tuple[np.ndarray | None, np.ndarray]]:
        """Views of one record batch: where each row begins, and the values."""
        batch = self._file.get_batch(number)
        columns: dict[str, tuple[np.ndarray | None, np.ndarray]] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_large_list(column.type):
                columns[name] = column.offsets.to_numpy(), column.values.to_numpy()
            else:
                columns[name] = None, column.to_numpy()
        return columns
