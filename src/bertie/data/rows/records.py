"""Reads the records of a text file by number, each with its file and line."""

from typing import Any

from bertie.data.rows.file_bytes import MARK, FileBytes
from bertie.data.rows.index import build_index
from bertie.data.rows.rows import Row, RowError, Rows
from bertie.text.reading.encodings import wrong_byte
from bertie.text.reading.files import JOINED_HINT, blank_notice
from bertie.text.reading.lines import MAX_LINE_BYTES

SPACES = b" \t\r\v\f"
NEWLINE = b"\n"


class Records:
    """`quoted`, `spaces`, `paragraphs` and `keep_blank` are those of `build_index`."""

    def __init__(
        self,
        source: FileBytes,
        *,
        quoted: bool = False,
        spaces: bytes = SPACES,
        paragraphs: bool = False,
        keep_blank: bool = False,
    ):
        self.name, self._source = source.name, source
        self._index = build_index(source, quoted=quoted, spaces=spaces, paragraphs=paragraphs, keep_blank=keep_blank)
        self.num_blank = self._index.num_blank
        self.line = self._index.line  # the line where a record begins, by its number

    def __len__(self) -> int:
        return len(self._index.starts) - 1

    def start(self, number: int) -> int:
        """The first byte of a record."""
        return int(self._index.starts[number])

    def where(self, number: int) -> str:
        return f"{self.name}:{self.line(number)}"

    def text(self, number: int) -> str:
        """The record with its line ends, and with the blank lines that follow it."""
        start, stop = (int(place) for place in self._index.starts[number : number + 2])
        if stop - start > MAX_LINE_BYTES:
            what = f"the row is longer than the limit of {MAX_LINE_BYTES:,} bytes"
            raise RowError(what, where=self.where(number), kind="too long", hint="is a quote opened and not closed?")
        raw = self._source.read(start, stop)
        lines = raw.split(NEWLINE) if MARK in raw else []
        if (marked := next((place for place, line in enumerate(lines) if line.startswith(MARK)), None)) is not None:
            where, what = f"{self.name}:{self.line(number) + marked}", "the line starts with a byte-order mark"
            raise RowError(what, where=where, kind="byte-order mark", hint=JOINED_HINT)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            what, hint = wrong_byte(raw, error)
            where = f"{self.name}:{self.line(number) + raw.count(NEWLINE, 0, error.start)}"
            what = f"{what} at offset {start + error.start:,} of the text"
            raise RowError(what, where=where, kind="not UTF-8", hint=hint) from None

    def first_line(self, number: int) -> str:
        """The text of a record that is one line, without its end."""
        return self.text(number).partition("\n")[0].removesuffix("\r")


class LineRows(Rows):
    """Plain text with the column `text`: one row for each line that is not blank, or, with `every_line`, for each."""

    columns: tuple[str, ...] = ("text",)

    def __init__(self, source: FileBytes, every_line: bool = False):
        self.name, self.notices = source.name, []
        self._records = Records(source, keep_blank=every_line)
        if self._records.num_blank:
            self.notices.append(blank_notice(self.name, self._records.num_blank))
        self.num_rows = len(self._records)

    def _read(self, number: int) -> Row:
        return Row(
            self._values(self._records.first_line(number), self._records.where(number)), self._records.where(number)
        )

    def _values(self, line: str, where: str) -> dict[str, Any]:
        return {"text": line}
