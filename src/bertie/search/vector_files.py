"""Turns the finished spool of a run into an .npy array [texts, width], or into a .parquet table of row number, text
where chosen, and vector, with the settings in its metadata."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bertie.disk import atomic_file, refuse_inputs
from bertie.errors import SpecError
from bertie.search.spool import Journal, Spool
from bertie.text.reading.files import TextSource

ROW_GROUP_BYTES = 1 << 24
COUNTS = ("num_texts", "num_tokens", "num_truncated", "num_cut", "num_empty", "num_replaced")


@dataclass(frozen=True)
class VectorFile:
    """What the result looks like. The ending of `path` chooses .npy or .parquet."""

    path: Path
    dtype: str = "float32"
    with_text: bool = False

    def check(self, source: TextSource) -> None:
        """Refuses what cannot work before hours of work, not after."""
        if self.path.suffix not in (".npy", ".parquet"):
            raise SpecError(f"the output {self.path} is neither .npy nor .parquet", hint="give it one of these endings")
        if self.dtype not in ("float32", "float16"):
            raise SpecError(f"vectors are written as float32 or float16, not {self.dtype!r}")
        if self.with_text and self.path.suffix != ".parquet":
            raise SpecError("an .npy file has no place for texts", hint="write .parquet, or leave out `with_text`")
        if self.with_text and (source.is_stdin or not Path(source.path).is_file()):
            # They are read a second time when the table is written.
            raise SpecError("texts of a pipe cannot be kept", hint="save them to a file and embed that")
        if self.path.is_dir():
            raise SpecError(f"the output {self.path} is a folder", hint="name a file in it")
        if not self.path.absolute().parent.is_dir():
            raise SpecError(f"there is no folder {self.path.absolute().parent} to write to", hint="make it first")
        if not source.is_stdin:
            spool = Spool(self.path, self.dtype)
            for written in (self.path, spool.part, spool.journal_path):
                refuse_inputs(written, [source.path])

    def convert(self, vectors: np.ndarray) -> np.ndarray:
        if self.dtype == "float16" and np.abs(vectors).max(initial=0.0) > np.finfo(np.float16).max:
            raise SpecError(
                "a vector has a value too large for float16", hint="write float32, or normalize the vectors"
            )
        return vectors.astype(self.dtype)

    def finish(self, spool: Spool, journal: Journal, texts: Iterator[str] | None) -> None:
        """Puts the whole file in place at once. May be run again after a kill at any point: it gives the same bytes."""
        if self.path.suffix == ".npy":
            spool.become_target(journal)
        else:
            with spool.guard(journal.num_texts), atomic_file(self.path) as file:
                self._write_table(file, spool, journal, texts)
        spool.remove()

    def _write_table(self, file: BinaryIO, spool: Spool, journal: Journal, texts: Iterator[str] | None) -> None:
        assert journal.width is not None
        schema = self._schema(journal)
        row_bytes = journal.width * spool.dtype.itemsize
        start, words = 0, texts if self.with_text and texts is not None else repeat("")
        with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer:
            while start < journal.num_texts:
                group: list[str] = []
                size = 0
                while start + len(group) < journal.num_texts and size < ROW_GROUP_BYTES:
                    group.append(next(words))
                    size += row_bytes + len(group[-1])
                vectors = spool.read_rows(start, len(group), journal.width)  # [rows, width]
                columns = [
                    pa.array(range(start, start + len(group)), pa.int64()),
                    pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), journal.width),
                ]
                if self.with_text:
                    columns.insert(1, pa.array(group, pa.string()))
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=len(group))
                start += len(group)

    def _schema(self, journal: Journal) -> pa.Schema:
        value = pa.float32() if self.dtype == "float32" else pa.float16()
        fields = [pa.field("row", pa.int64()), pa.field("vector", pa.list_(value, journal.width))]
        if self.with_text:
            fields.insert(1, pa.field("text", pa.string()))
        # Nothing that differs between two equal runs may be in it, so no seconds and no paths.
        facts = {"settings": journal.settings} | {name: getattr(journal, name) for name in COUNTS}
        return pa.schema(fields, metadata={"bertie": json.dumps(facts, sort_keys=True)})
