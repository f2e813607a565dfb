"""Stores rows so that they survive a kill: chunks of vectors go to `<target>.part`, an .npy file whose header is set at
the end, and `<target>.journal` counts how many of its rows are safe. Both have checksums: damage is not continued."""

import io
import json
import os
import zlib
from contextlib import AbstractContextManager
from glob import escape
from pathlib import Path
from typing import BinaryIO, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from bertie.disk import PART, is_sealed, lock_file, sealed, sync_file, sync_folder, write_file, writing_to
from bertie.errors import FolderError, UserError

Setting = str | int | float | bool | None


class Journal(BaseModel):
    """What is done so far. `settings` decide the bytes of the result: a run under other ones must not continue it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[2] = 2
    state: Literal["embedding", "finishing"] = "embedding"
    source: str
    settings: dict[str, Setting]
    texts_digest: str = ""  # of the texts whose rows are safe
    rows_checksum: int = 0  # of these rows
    width: int | None = None
    num_texts: int = 0
    num_tokens: int = 0
    num_truncated: int = 0
    num_cut: int = 0
    num_empty: int = 0
    num_replaced: int = 0
    seconds: float = 0.0

    def differences(self, settings: dict[str, Setting]) -> list[str]:
        names = sorted(set(self.settings) | set(settings))
        pairs = [(name, self.settings.get(name), settings.get(name)) for name in names]
        return [f"{name} was {before!r} and is now {now!r}" for name, before, now in pairs if before != now]


class Spool:
    """The part file and the journal of one target. Opening it locks the part file against a second run."""

    def __init__(self, target: Path, dtype: str):
        self.target, self.dtype = target, np.dtype(dtype).newbyteorder("<")
        self.part = target.with_name(target.name + PART)
        self.journal_path = target.with_name(target.name + ".journal")
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        with self.guard(0):
            self._file = os.fdopen(os.open(self.part, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        try:
            lock_file(self._file, self.target)
        except FolderError:
            self._file.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.file.close()

    @property
    def file(self) -> BinaryIO:
        assert self._file is not None, "the spool is used inside its `with` block"
        return self._file

    def guard(self, num_safe: int) -> AbstractContextManager[None]:
        """Turns a failed write into one sentence; the files stay as they are, so the run can go on later."""
        return writing_to(self.target, "run it again: it continues there", f"{num_safe:,} texts" if num_safe else "")

    def read_journal(self) -> Journal | None:
        try:
            content = self.journal_path.read_bytes()
            if not is_sealed(content):
                raise ValueError("its bytes were changed")
            facts = json.loads(content)
            return Journal.model_validate({name: value for name, value in facts.items() if name != "sha256"})
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:  # pydantic's error is a ValueError
            hint = "give `restart` to start over"
            raise UserError("the journal cannot be read", where=str(self.journal_path), hint=hint) from error

    def rewind(self, journal: Journal) -> None:
        """Forgets what was written after the last safe row, or all when there is none."""
        size = self._offset(journal.num_texts, journal.width) if journal.width is not None else 0
        if self.part.stat().st_size < size:
            what = f"the file has fewer than the {journal.num_texts:,} rows that {self.journal_path.name} counts"
            raise UserError(what, where=str(self.part), hint="give `restart` to start over")
        if journal.width is not None and self._checksum(journal) != journal.rows_checksum:
            what = f"the rows that {self.journal_path.name} counts were changed"
            raise UserError(what, where=str(self.part), hint="give `restart` to start over")
        with self.guard(journal.num_texts):
            self.file.truncate(size)
            self.file.seek(size)

    def _checksum(self, journal: Journal) -> int:
        """Of the rows that are counted, as they are in the file."""
        assert journal.width is not None
        total, begin = 0, self._offset(0, journal.width)
        self.file.seek(begin)
        left = self._offset(journal.num_texts, journal.width) - begin
        while left and (piece := self.file.read(min(left, 1 << 20))):
            total, left = zlib.crc32(piece, total), left - len(piece)
        return total

    def append(self, rows: np.ndarray, before: Journal, after: Journal) -> Journal:
        """Rows first, and on the disk, before the journal counts them. Returns the journal with their checksum."""
        content = np.ascontiguousarray(rows, self.dtype).tobytes()
        after = after.model_copy(update={"rows_checksum": zlib.crc32(content, before.rows_checksum)})
        with self.guard(before.num_texts):
            if before.width is None:
                _write_all(self.file, npy_header(0, rows.shape[1], self.dtype))
            _write_all(self.file, content)
            sync_file(self.file)
            self.write_journal(after)
        return after

    def write_journal(self, journal: Journal) -> None:
        write_file(self.journal_path, sealed(journal.model_dump_json(indent=2)))

    def read_rows(self, start: int, count: int, width: int) -> np.ndarray:
        values = np.fromfile(self.part, self.dtype, count=count * width, offset=self._offset(start, width))
        return values.reshape(count, width)

    def become_target(self, journal: Journal) -> None:
        """The part file with the header of its final shape is the .npy file."""
        assert journal.width is not None
        with self.guard(journal.num_texts):
            self.file.seek(0)
            _write_all(self.file, npy_header(journal.num_texts, journal.width, self.dtype))
            sync_file(self.file)
            self.part.replace(self.target)
            sync_folder(self.target.parent)

    def remove(self) -> None:
        # The journal goes last: "finishing" without a part file means that the target is whole.
        for path in (self.part, *self.target.parent.glob(f"{escape(self.target.name)}.*{PART}")):
            path.unlink(missing_ok=True)
        self.journal_path.unlink(missing_ok=True)

    def _offset(self, row: int, width: int) -> int:
        return len(npy_header(0, width, self.dtype)) + row * width * self.dtype.itemsize


def npy_header(num_rows: int, width: int, dtype: np.dtype) -> bytes:
    """numpy leaves room for the first axis to grow, so the header's length does not depend on `num_rows`."""
    buffer = io.BytesIO()
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (num_rows, width)}
    np.lib.format.write_array_header_1_0(buffer, description)
    return buffer.getvalue()


def _write_all(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # an unbuffered file may take less than it was given
        rest = rest[file.write(rest) :]
