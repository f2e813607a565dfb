"""Turns Parquet files, Arrow files, and folders that `datasets` saved into rows of Python values.

Arrow files are mapped; Parquet cannot be read from a row on, so it is unpacked once to a temporary Arrow file."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bertie.data.rows.class_labels import features_in, label_names, named
from bertie.data.rows.rows import JoinedRows, Row, RowError, Rows
from bertie.errors import InputError

BATCH = 1024  # rows


class ArrowRows(Rows):
    """Record batches by row. `features` has the names of labels that are stored as numbers."""

    def __init__(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], features: Any = None):
        self.name, self.notices = name, []
        self.columns = tuple(schema.names)
        if repeated := [column for column in self.columns if self.columns.count(column) > 1]:
            raise InputError(f"the column {repeated[0]!r} is there twice", where=name)
        self._batches = list(batches)
        self._begins = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        names = label_names(features or features_in(schema))
        self._labels = {column: names[column] for column in self.columns if column in names}
        for column, labels in self._labels.items():
            listed = ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
            self.notices.append(f"{name}: the numbers in {column!r} are read as their names ({listed})")
        self.num_rows = int(self._begins[-1])

    def _read(self, number: int) -> Row:
        where = f"{self.name}: row {number + 1}"
        part = int(np.searchsorted(self._begins, number, side="right")) - 1
        batch, place = self._batches[part], number - int(self._begins[part])
        values = {column: self._value(batch, column, place, where) for column in self.columns}
        return Row(values, where)

    def _value(self, batch: pa.RecordBatch, column: str, place: int, where: str) -> Any:
        try:
            value = batch.column(column)[place].as_py()
        except (UnicodeDecodeError, pa.ArrowException) as error:
            what, hint = f"{column!r} cannot be read ({error})", "write the column again"
            raise RowError(what, where=where, kind="cannot be read", hint=hint) from None
        return named(value, self._labels[column]) if column in self._labels else value


def open_arrow(path: Path, features: Any = None) -> ArrowRows:
    """An Arrow stream, which is what `datasets` writes, or an Arrow file."""
    for open_table in (_read_stream, _read_file):
        try:
            schema, batches = open_table(pa.memory_map(str(path)))
        except (pa.ArrowException, OSError) as error:
            reason = error
        else:
            return ArrowRows(str(path), schema, batches, features)
    raise InputError(f"not an Arrow file, or a broken one ({_first_line(reason)})", where=str(path))


def open_parquet(path: Path) -> ArrowRows:
    try:
        table = pq.ParquetFile(path, pre_buffer=False)
        # Dictionaries may differ from batch to batch, which an Arrow file cannot hold.
        schema = pa.schema([_plain(field) for field in table.schema_arrow], table.schema_arrow.metadata)
        with tempfile.NamedTemporaryFile(suffix=".arrow") as spool:
            with pa.ipc.new_file(spool.name, schema) as writer:
                for batch in table.iter_batches(batch_size=BATCH, use_threads=False):
                    writer.write_batch(batch.cast(schema))
            # The map holds the file when its name is gone.
            _, batches = _read_file(pa.memory_map(spool.name))
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path), hint="check the path") from None
    except (pa.ArrowException, OSError) as error:
        what = f"not a Parquet file, or a broken one ({_first_line(error)})"
        raise InputError(what, where=str(path), hint="download the file again") from None
    rows = ArrowRows(str(path), schema, batches)
    num_bytes = sum(batch.nbytes for batch in batches)
    rows.notices.append(f"{path}: unpacked to a temporary file of {num_bytes:,} bytes in {tempfile.gettempdir()}")
    return rows


def open_dataset(folder: Path) -> Rows:
    """A folder written by `save_to_disk` of the library `datasets`."""
    if (folder / "dataset_dict.json").is_file():
        splits = _read_json(folder / "dataset_dict.json").get("splits", [])
        hint = "name one of them: " + ", ".join(str(folder / str(split)) for split in splits)
        raise InputError("the folder has several splits", where=str(folder), hint=hint)
    if not (folder / "state.json").is_file():
        hint = "give files, or a folder that datasets wrote with save_to_disk (it has state.json and *.arrow)"
        raise InputError("the folder is not a saved dataset", where=str(folder), hint=hint)
    info = folder / "dataset_info.json"
    features = _read_json(info).get("features") if info.is_file() else None
    files = _read_json(folder / "state.json").get("_data_files") or []
    parts = [open_arrow(folder / str(file["filename"]), features) for file in files]
    if not parts:
        raise InputError("the dataset has no data files", where=str(folder), hint="save it again")
    if len(parts) == 1:
        return parts[0]
    joined = JoinedRows(parts)
    joined.name, joined.notices = str(folder), parts[0].notices
    return joined


def _read_stream(source: Any) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    reader = pa.ipc.open_stream(source)
    return reader.schema, list(reader)


def _read_file(source: Any) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    reader = pa.ipc.open_file(source)
    return reader.schema, list(_all_batches(reader))


def _all_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    return (reader.get_batch(number) for number in range(reader.num_record_batches))


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), hint="save the dataset again") from None
    if not isinstance(content, dict):
        raise InputError("is not a JSON object", where=str(path), hint="save the dataset again")
    return content


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
