"""Gathers columns that belong together (ending0, ending1, ...) into one more column, of lists."""

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from bertie.data.rows.rows import Row, Rows
from bertie.errors import InputError
from bertie.reporting.quantities import list_few


class GatheredRows(Rows):
    """Cells that are empty at the end of a list are left out: rows may have lists of different length."""

    def __init__(self, rows: Rows, column: str, parts: Sequence[str]):
        self.name, self.columns = rows.name, (*rows.columns, column)
        self.notices = [*rows.notices, f"{column} are the columns {list_few(parts)}"]
        self._rows, self._column, self._parts = rows, column, parts
        self.num_rows = self._rows.num_rows

    def _read(self, number: int) -> Row:
        row = self._rows.row(number)
        cells = [row.values.get(part) for part in self._parts]
        while cells and cells[-1] in (None, ""):
            cells.pop()
        return Row({**row.values, self._column: cells}, row.where)


def gathered(rows: Rows, role: str, names: Sequence[str], named: Mapping[str, str]) -> tuple[Rows, dict[str, str]]:
    """Rows where this role is one column, and the columns that are named. As given, such as "ending0,ending1"; or else
    the columns with the role's names and a number, or the letters A, B, ..., where no column has the name alone."""
    given = named.get(role)
    if given is None:
        if {name.lower() for name in names} & {column.lower() for column in rows.columns}:
            return rows, dict(named)
        parts = numbered_columns(rows.columns, names) or lettered_columns(rows.columns)
    else:
        parts = [] if given in rows.columns else [part.strip() for part in given.split(",")]
        if missing := [part for part in parts if part not in rows.columns]:
            hint = f"its columns are: {list_few(rows.columns)}"
            raise InputError(f"there is no column {missing[0]!r}", where=rows.name, hint=hint)
    if len(parts) < 2:
        return rows, dict(named)
    return GatheredRows(rows, role, parts), {**named, role: role}


def numbered_columns(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """In the order of their numbers, which count from 0 or 1 without a gap; none where that is one column or no."""
    for name in names:
        pattern = re.compile(rf"{re.escape(name.removesuffix('s'))}s?[ _-]?(\d{{1,2}})", re.IGNORECASE)
        found = {int(match[1]): column for column in columns if (match := pattern.fullmatch(column))}
        numbers = sorted(found)
        if len(found) > 1 and numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(found))):
            return [found[number] for number in numbers]
    return []


def lettered_columns(columns: Sequence[str]) -> list[str]:
    found = []
    for letter in ascii_uppercase:
        if letter not in columns:
            break
        found.append(letter)
    return found
