"""Turns rows in memory into `Rows`: lists of dicts or texts, columns, DataFrames, Arrow tables and `datasets` objects.

pandas, polars and datasets are recognized by the objects themselves, and never imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bertie.data.rows.arrow_rows import ArrowRows
from bertie.data.rows.class_labels import label_names, named
from bertie.data.rows.opening import open_rows
from bertie.data.rows.rows import Row, Rows
from bertie.errors import InputError

TEXT = "text"  # the column of rows that are texts
ACCEPTED = "paths, a list of dicts or of texts, a dict of columns, a DataFrame, an Arrow table or a dataset"


def rows_of(data: Any, name: str) -> Rows:
    """The rows of `data`, in their order. `name` is what messages call them: "train: row 17"."""
    if isinstance(data, Rows):
        return data
    if isinstance(data, str | Path) or _is_paths(data):
        return open_rows(data)
    library = type(data).__module__.partition(".")[0]
    if type(data).__name__ == "Series":  # of pandas or polars
        return MemoryRows(name, _as_dicts(data.to_list(), name))
    if library == "datasets":
        return _of_dataset(data, name)
    if library == "pandas":
        return _of_pandas(data, name)
    if hasattr(data, "__arrow_c_stream__"):
        return TableRows(name, pa.table(data))
    if hasattr(data, "collect") and library == "polars":
        return TableRows(name, pa.table(data.collect()))
    if isinstance(data, Mapping):
        return _of_columns(data, name)
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return MemoryRows(name, _as_dicts(list(data), name))
    raise _refusal(data, name)


class MemoryRows(Rows):
    """A list of dicts. A field that a row does not have is not in its values."""

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]]):
        self.name, self.notices = name, []
        self.columns = tuple(dict.fromkeys(column for row in rows for column in row))
        self._rows = rows
        self.num_rows = len(self._rows)

    def _read(self, number: int) -> Row:
        values = {column: _plain(value) for column, value in self._rows[number].items()}
        return Row(values, f"{self.name}: row {number + 1}")


class TableRows(ArrowRows):
    """An Arrow table that is in memory already."""

    def __init__(self, name: str, table: pa.Table, features: Any = None):
        super().__init__(name, table.schema, table.to_batches(), features)

    def _value(self, batch: pa.RecordBatch, column: str, place: int, where: str) -> Any:
        return _plain(super()._value(batch, column, place, where))


def _of_dataset(data: Any, name: str) -> Rows:
    kind = type(data).__name__
    if kind.endswith("DatasetDict"):
        choices = ", ".join(f"data[{split!r}]" for split in data)
        raise InputError("this dataset has several splits", where=name, hint=f"give one of them: {choices}")
    features = data.features.to_dict() if data.features is not None else {}
    if kind == "Dataset":
        return TableRows(name, data.with_format("arrow")[:], features)
    names = label_names(features)
    rows = [
        {column: named(value, names[column]) if column in names else value for column, value in row.items()}
        for row in data
    ]
    return MemoryRows(name, rows)


def _of_pandas(data: Any, name: str) -> Rows:
    if type(data).__name__ != "DataFrame":
        raise _refusal(data, name)
    try:
        return TableRows(name, pa.Table.from_pandas(data, preserve_index=False))
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a column with values of several types
        return _of_columns({column: data[column].tolist() for column in data.columns}, name)


def _of_columns(data: Mapping[Any, Any], name: str) -> Rows:
    columns = {str(column): list(values) for column, values in data.items() if not isinstance(values, str)}
    lengths = {column: len(values) for column, values in columns.items()}
    if len(columns) != len(data) or len(set(lengths.values())) > 1:
        found = ", ".join(f"{column} {length:,}" for column, length in lengths.items())
        what = f"columns are lists of the same length ({found or 'there is none'})"
        raise InputError(what, where=name, hint="one row alone is a list of one dict")
    return MemoryRows(name, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])


def _as_dicts(data: list[Any], name: str) -> list[Mapping[str, Any]]:
    if all(isinstance(row, Mapping) for row in data):
        return data
    if all(isinstance(row, str) for row in data):
        return [{TEXT: text} for text in data]
    expected = Mapping if isinstance(data[0], Mapping) else str
    number = next(number for number, row in enumerate(data) if not isinstance(row, expected))
    what = f"this is {type(data[number]).__name__}, where a row is a dict or a text"
    raise InputError(what, where=f"{name}: row {number + 1}", hint='a row is a dict by column, like {"text": "..."}')


def _is_paths(data: Any) -> bool:
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(one, Path) for one in data)


def _plain(value: Any) -> Any:
    """Values as JSON would have them; what is not a number is None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and value != value else value


def _refusal(data: Any, name: str) -> InputError:
    return InputError(f"rows cannot be read from {type(data).__name__}", where=name, hint=f"give {ACCEPTED}")
