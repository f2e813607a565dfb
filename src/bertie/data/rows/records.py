"""Reads the records of a text file by number, each with its file and line."""

from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.index import build_index
from bertie.data.rows.rows import Row, RowError, Rows
from bertie.text.reading.lines import MAX_LINE_BYTES, conversion

SPACES = b" \t\r\v\f"


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

    def __len__(self) -> int:
        return len(self._index)

    def line(self, number: int) -> int:
        return self._index.line(number)

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
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"not UTF-8: byte 0x{raw[error.start]:02X} at offset {start + error.start:,} of the text"
            hint = f"convert it from the encoding it has, for example: {conversion(self.name, 'LATIN1')}"
            raise RowError(what, where=self.where(number), kind="not UTF-8", hint=hint) from None

    def first_line(self, number: int) -> str:
        """The text of a record that is one line, without its end."""
        return self.text(number).partition("\n")[0].removesuffix("\r")


class LineRows(Rows):
    """Plain text with the column `text`: one row for each line that is not blank, or, with `every_line`, for each."""

    columns = ("text",)

    def __init__(self, source: FileBytes, every_line: bool = False):
        self.name, self.notices = source.name, []
        self._records = Records(source, keep_blank=every_line)
        if self._records.num_blank:
            self.notices.append(f"{self.name}: {self._records.num_blank:,} blank lines are left out")

    @property
    def num_rows(self) -> int:
        return len(self._records)

    def _read(self, number: int) -> Row:
        return Row({"text": self._records.first_line(number)}, self._records.where(number))
