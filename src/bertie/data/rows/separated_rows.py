"""Reads csv and tsv as rows of strings, each parsed when it is read."""

import csv
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.header import header_names, numbered_names, shorten, usual_widths, why_no_header
from bertie.data.rows.records import Records
from bertie.data.rows.rows import Row, RowError, Rows, spread_numbers
from bertie.errors import InputError
from bertie.reporting.quantities import list_few
from bertie.text.reading.files import blank_notice
from bertie.text.reading.lines import MAX_LINE_BYTES

SAMPLE = 1000


@dataclass(frozen=True)
class Dialect:
    name: str
    quoted: bool
    split: Callable[[str], list[str]]
    hint: str  # why a row may have too few or too many cells


def split_csv(text: str, delimiter: str = ",") -> list[str]:
    return next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter, strict=True))


def split_tsv(text: str) -> list[str]:
    """Quotes are ordinary characters, as the format says and as the benchmarks' files have them."""
    return text.partition("\n")[0].removesuffix("\r").split("\t")


TSV_HINT = "a cell has no tab and no line break; if cells are in quotes, give `format=quoted-tsv`"
CSV = Dialect("csv", True, split_csv, "a cell with a comma, a quote or a line break is written in quotes")
TSV = Dialect("tsv", False, split_tsv, TSV_HINT)
QUOTED_TSV = Dialect("quoted-tsv", True, partial(split_csv, delimiter="\t"), CSV.hint.replace("comma", "tab"))
SIGNS = {";": "semicolon", "\t": "tab", "|": "vertical bar"}


def csv_dialect(delimiter: str) -> Dialect:
    if delimiter == ",":
        return CSV
    hint = CSV.hint.replace("comma", SIGNS[delimiter])
    return Dialect("csv", True, partial(split_csv, delimiter=delimiter), hint)


class SeparatedRows(Rows):
    """`header` is whether the first row names the columns; None guesses, and `notices` has the guess."""

    def __init__(self, source: FileBytes, dialect: Dialect, header: bool | None = None):
        # The limit belongs to the process and is 128 KB at first. It is only ever raised.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
        self.name, self.notices = source.name, []
        self._dialect = dialect
        self._records = Records(source, quoted=dialect.quoted, spaces=b"\r")
        if self._records.num_blank:
            self.notices.append(blank_notice(self.name, self._records.num_blank))
        self._has_header = bool(header) and len(self._records) > 0
        self.columns: tuple[str, ...] = ()
        self._fewest = 0
        if len(self._records):
            self._name_columns(header)
        self.num_rows = len(self._records) - self._has_header

    def _read(self, number: int) -> Row:
        record = number + self._has_header
        cells = self._cells(record)
        num_columns = len(self.columns)
        if not self._fewest <= len(cells) <= num_columns:
            wanted = f"{num_columns}" if self._fewest == num_columns else f"{self._fewest} to {num_columns}"
            what = f"the row has {len(cells)} cells, not {wanted}"
            hint = self._dialect.hint
            raise RowError(what, where=self._records.where(record), kind="wrong number of cells", hint=hint)
        missing = [None] * (num_columns - len(cells))
        return Row(dict(zip(self.columns, [*cells, *missing], strict=True)), self._records.where(record))

    def _cells(self, record: int) -> list[str]:
        text = self._records.text(record)
        try:
            return self._dialect.split(text)
        except csv.Error as error:
            reason = "a quote or a line break is where none may be" if "new-line" in str(error) else str(error)
            hint = 'a cell with a quote is written in quotes, and its quotes twice: "say ""so"""'
            where = self._records.where(record)
            raise RowError(f"not valid CSV ({reason})", where=where, kind="not valid CSV", hint=hint) from None

    def _name_columns(self, header: bool | None) -> None:
        first, sample = self._cells(0), list[list[str]]()
        for record in spread_numbers(len(self._records), SAMPLE)[1:]:
            with suppress(RowError):  # it is reported when the row is read
                sample.append(self._cells(record))
        if header is None:
            reason = why_no_header(first, sample)
            self._has_header = reason is None
            names = list_few(first)
            guess = f"the first row is data, since {reason}" if reason else f"the first row is the header: {names}"
            self.notices.append(f"{self.name}: {guess}")
        if self._has_header:
            self.columns = header_names(first)
            self._fewest = len(first)
            repeated = [name for name in self.columns if self.columns.count(name) > 1]
            if repeated:
                hint = "give each column its own name"
                raise InputError(f"the header has {repeated[0]!r} twice", where=self._records.where(0), hint=hint)
        else:
            self._fewest, num_columns = usual_widths(map(len, [first, *sample]))
            self.columns = numbered_names(num_columns)
            if self._fewest < num_columns:
                widths = f"rows have {self._fewest} to {num_columns} cells; what a row does not have is None"
                self.notices.append(f"{self.name}: {widths}")
        # Some programs write quoted cells into tsv. They cannot be distinguished from quoted speech.
        quoted = [cell for cells in sample for cell in cells if len(cell) > 1 and cell[0] == cell[-1] == '"']
        if quoted and not self._dialect.quoted:
            kept = f"quotes around cells are kept as part of them, as in {shorten(quoted[0])}"
            self.notices.append(f"{self.name}: {kept} (`format=quoted-tsv` removes them)")
