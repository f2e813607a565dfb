"""Labelled rows by number: the interface that all kinds of data share, several files as one, and a choice of rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from bertie.errors import InputError


class Row(NamedTuple):
    """The values by column, and where they are: "file.csv:17", "file.parquet: row 17", "file.json: question ID"."""

    values: dict[str, Any]
    where: str


class RowError(InputError):
    """One row is wrong. `kind` is the same phrase for the same mistake in other rows, so that they can be counted."""

    def __init__(self, what: str, *, where: str, kind: str, hint: str | None = None):
        super().__init__(what, where=where, hint=hint)
        self.kind = kind


class Rows(Sequence[Row], ABC):
    """Rows read one by one from their file. A row that is wrong raises a `RowError` when it is read, not before."""

    name: str  # of the file, for messages
    num_rows: int
    columns: tuple[str, ...]
    notices: list[str]  # what was guessed or left out, as sentences

    @abstractmethod
    def _read(self, number: int) -> Row:
        """`number` is from 0 to `num_rows - 1`."""

    def row(self, number: int) -> Row:
        return self._read(range(self.num_rows)[number])

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[Row]:
        return map(self._read, range(self.num_rows))

    @overload
    def __getitem__(self, chosen: int) -> Row: ...

    @overload
    def __getitem__(self, chosen: slice) -> "Rows": ...

    def __getitem__(self, chosen: int | slice) -> "Row | Rows":
        if isinstance(chosen, slice):
            return ChosenRows(self, range(self.num_rows)[chosen])
        return self.row(chosen)


class ChosenRows(Rows):
    """Some rows of others, in the given order."""

    def __init__(self, rows: Rows, numbers: Sequence[int]):
        self.name, self.columns, self.notices = rows.name, rows.columns, rows.notices
        self._rows, self._numbers = rows, numbers
        self.num_rows = len(self._numbers)

    def _read(self, number: int) -> Row:
        return self._rows.row(int(self._numbers[number]))


class JoinedRows(Rows):
    """The rows of several files, one file after the other."""

    def __init__(self, parts: Sequence[Rows]):
        self.name = ", ".join(part.name for part in parts)
        self.columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
        self.notices = [notice for part in parts for notice in part.notices]
        self._parts = parts
        self._begins = np.cumsum([0, *(part.num_rows for part in parts)])
        self.num_rows = int(self._begins[-1])

    def _read(self, number: int) -> Row:
        part = int(np.searchsorted(self._begins, number, side="right")) - 1
        return self._parts[part].row(number - int(self._begins[part]))


def spread_numbers(num_rows: int, sample: int) -> list[int]:
    """At most `sample` numbers, evenly over all: files are often sorted by label, so the first rows are not
    representative."""
    count = min(num_rows, sample)
    return [number * num_rows // count for number in range(count)]
