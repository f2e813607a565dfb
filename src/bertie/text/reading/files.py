"""Turns a file of lines, JSON lines, CSV, TSV or Parquet, plain or compressed, or standard input into a stream of
`TextRecord`s. One line, row or small batch is in memory at a time, whatever the file's size."""

import csv
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, Self

import pyarrow as pa
import pyarrow.parquet as pq

from bertie.reporting.quantities import list_few
from bertie.text.reading.encodings import MARK, UTF_8
from bertie.text.reading.lines import CODECS, MAX_LINE_BYTES, STANDARD_INPUT, Lines, open_bytes, refuse, refuse_long
from bertie.text.reading.paths import kind_of_path

CELLS = "every row must have the header's cells; "
CSV_CELLS = CELLS + "in CSV a cell with a comma is written in quotes"
TSV_CELLS = CELLS + "in TSV a cell has no tab and no line break, with quotes or without: write such a file as CSV"
JOINED_HINT = "remove it: files were joined, each with its own mark"
SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")
LIKELY_COLUMNS = ("text", "sentence", "review", "content", "document", "body")


class TextRecord(NamedTuple):
    """One text and where it stood. Lines count from 1; in Parquet the "line" is the row."""

    text: str
    file: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class TextSource:
    """A file of texts and how to read it. `path` "-" is standard input; `column` names the column or the JSON field;
    `format` replaces the file's ending; `shown` is what messages call it, where that is not its path."""

    path: str | Path
    column: str | None = None
    format: str | None = None
    max_line_bytes: int = MAX_LINE_BYTES
    null_as_empty: bool = False
    encoding: str = UTF_8
    shown: str | None = None

    @property
    def name(self) -> str:
        return self.shown or (STANDARD_INPUT if self.is_stdin else str(self.path))

    @property
    def is_stdin(self) -> bool:
        return str(self.path) == "-"

    @property
    def is_pipe(self) -> bool:
        """Whether it can be read only once, and has no ending: standard input, or what a shell gives for <(...)."""
        return self.is_stdin or kind_of_path(self.path) == "pipe"

    def read(self) -> "TextReader":
        return TextReader(self)

    def fail(self, what: str, line: int | None = None, hint: str | None = None) -> NoReturn:
        refuse(self.name, what, line, hint)

    def choose_column(self, columns: Sequence[str], notices: list[str]) -> str:
        """The asked column, or the only likely one; a guess goes to `notices`, so that the caller can report it."""
        listed = list_few(columns)
        likely = [column for column in columns if column.lower() in LIKELY_COLUMNS]
        wanted = self.column or ("text" if "text" in columns else None)
        candidates = [wanted] if wanted else list(columns) if len(columns) == 1 else likely
        if not columns:
            self.fail("it has no columns", hint="give a file with a column of texts")
        if len(candidates) != 1:
            hint = f"choose one as `column`; its columns are: {listed}"
            self.fail("it is not clear which column has the text", hint=hint)
        chosen = candidates[0]
        if not self.column and len(columns) == 1 and (len(chosen.split()) > 2 or chosen.endswith(SENTENCE_ENDS)):
            hint = "add a line with the column's name, or read every line as a text with `format=txt`"
            self.fail(f"its first row, {chosen[:60]!r}, looks like a text, not like a column's name", hint=hint)
        if (times := list(columns).count(chosen)) != 1:
            what = f"the column {chosen!r} is there {times} times" if times else f"there is no column {chosen!r}"
            self.fail(what, hint=f"its columns are: {listed}")
        if not wanted:
            notices.append(f"{self.name}: reading the column {chosen!r} (of {listed})")
        return chosen

    def check_value(self, value: object, field: str, line: int) -> str:
        if value is not None and not isinstance(value, str):
            self.fail(f"{field!r} is {_json_type(value)}, not a text", line, "write it as a string, in quotes")
        if value is None and not self.null_as_empty:
            hint = "remove the line, or count it as an empty text with `null_as_empty`"
            self.fail(f"{field!r} is null", line, hint)
        return value or ""


def _read_txt(lines: Lines, source: TextSource, notices: list[str]) -> Iterator[tuple[int, str]]:
    for text in lines:
        yield lines.number, _without_end(text)


def _read_jsonl(lines: Lines, source: TextSource, notices: list[str]) -> Iterator[tuple[int, str]]:
    for line, text in without_blank(lines, source, notices):
        yield line, parse_object(source, line, text)[0]


def parse_object(source: TextSource, line: int, text: str) -> tuple[str, dict[str, object]]:
    """The text that a line of JSON holds, and the whole object."""
    wanted = source.column or "text"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        array = "for a file that is one array: jq -c '.[]' turns it into lines" if text[0] == "[" else None
        source.fail(f"not valid JSON ({reason})", line, array or "each line must be one JSON object")
    if not isinstance(value, dict):
        source.fail(f"the line is {_json_type(value)}, not an object", line, f'write {{"{wanted}": "..."}}')
    if wanted not in value:
        hint = f"choose one as `column`; the line's fields are: {list_few(value)}"
        source.fail(f"there is no field {wanted!r}", line, hint)
    found = source.check_value(value[wanted], wanted, line)
    if "\\u" in text and _has_lone_surrogate(found):
        source.fail(f"{wanted!r} has half a surrogate pair (\\ud800 to \\udfff)", line, "fix or remove it")
    return found, value


def _read_csv(lines: Lines, source: TextSource, notices: list[str]) -> Iterator[tuple[int, str]]:
    row_start, row_length = 1, 0

    def feed() -> Iterator[str]:
        # A quote that is never closed would gather the rest of the file into one cell.
        nonlocal row_length
        for text in lines:
            row_length += len(text)
            if row_length > source.max_line_bytes + 2:
                refuse_long(source.name, row_start, source.max_line_bytes, "the row (is a quote not closed?) is")
            yield text

    # The limit belongs to the process and is 128 KB at first. It is only ever raised; ours is the guard above.
    csv.field_size_limit(max(csv.field_size_limit(), source.max_line_bytes + 2))
    rows = csv.reader(feed(), strict=True)

    def numbered() -> Iterator[tuple[int, list[str]]]:
        nonlocal row_start, row_length
        while True:
            row_start, row_length = rows.line_num + 1, 0
            try:
                row = next(rows, None)
            except csv.Error as error:
                source.fail(f"not valid CSV ({error})", row_start, 'a quote inside a quoted cell is written twice: ""')
            if row is None:
                return
            yield row_start, row

    yield from _read_cells(numbered(), source, notices, CSV_CELLS)


def _read_tsv(lines: Lines, source: TextSource, notices: list[str]) -> Iterator[tuple[int, str]]:
    """Tabs only, as the format has it: quotes are ordinary characters (and are so in the benchmarks' files)."""
    rows = ((lines.number, _without_end(text).split("\t")) for text in lines)
    is_noticed = False
    for line, text in _read_cells(rows, source, notices, TSV_CELLS):
        if not is_noticed and len(text) > 1 and text[0] == text[-1] == '"':
            notices.append(f"{source.name}:{line}: the text is in quotes; in TSV they are kept as part of it")
            is_noticed = True
        yield line, text


def _read_cells(
    rows: Iterator[tuple[int, list[str]]], source: TextSource, notices: list[str], hint: str
) -> Iterator[tuple[int, str]]:
    _, header = next(rows, (0, None))
    if header is None:
        return
    column = header.index(source.choose_column(header, notices))
    blank = 0
    for line, row in rows:
        is_blank = not row or (row == [""] and len(header) > 1)
        if blank and not is_blank:
            source.fail("the row is blank", blank, f'remove it (an empty text is written as "" in CSV); {hint}')
        if is_blank:
            blank = blank or line
        elif len(row) != len(header):
            source.fail(f"the row has {len(row)} cells, the header {len(header)}", line, hint)
        else:
            yield line, row[column]


def without_blank(lines: Lines, source: TextSource, notices: list[str]) -> Iterator[tuple[int, str]]:
    """The lines that are not blank. The others are no texts: they are counted."""
    num_blank = 0
    for text in lines:
        content = text.strip()
        if content.startswith(MARK):
            source.fail("the line starts with a byte-order mark", lines.number, JOINED_HINT)
        if content:
            yield lines.number, content
        else:
            num_blank += 1
    if num_blank:
        notices.append(blank_notice(source.name, num_blank))


def blank_notice(name: str, count: int) -> str:
    return f"{name}: {count:,} blank {'line is' if count == 1 else 'lines are'} left out"


def read_table(
    table: pq.ParquetFile, source: TextSource, notices: list[str], groups: Sequence[int] | None = None, row: int = 1
) -> Iterator[tuple[int, str]]:
    """Row number and text of each row; `groups` names the row groups to read, of which the first starts at `row`."""
    schema = table.schema_arrow
    name = source.choose_column(schema.names, notices)
    kind = schema.field(name).type
    stored = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(stored) or pa.types.is_large_string(stored) or pa.types.is_string_view(stored)):
        source.fail(f"the column {name!r} holds {kind}, not text", hint="write it as strings")
    try:
        for batch in table.iter_batches(batch_size=256, row_groups=groups, columns=[name], use_threads=False):
            values = batch.column(0).cast(pa.large_string())
            for value in values:
                if value.is_valid and len(value.as_buffer()) > source.max_line_bytes:
                    refuse_long(source.name, row, source.max_line_bytes, "the text is")
                yield row, source.check_value(value.as_py(), name, row)
                row += 1
    except UnicodeDecodeError as error:
        source.fail(f"{name!r} is not UTF-8 ({error.reason})", row, "write the column again as UTF-8")
    except (pa.ArrowException, OSError) as error:
        source.fail(f"the Parquet data is broken ({_first_line(error)})", row, "download the file again")


LINE_READERS: dict[str, Callable[[Lines, TextSource, list[str]], Iterator[tuple[int, str]]]] = {
    "txt": _read_txt,
    "jsonl": _read_jsonl,
    "csv": _read_csv,
    "tsv": _read_tsv,
}
FORMATS = (*LINE_READERS, "parquet")
ENDINGS = {".text": "txt", ".ndjson": "jsonl", ".pq": "parquet", ".tab": "tsv"} | {f".{name}": name for name in FORMATS}


class TextReader(Iterator[TextRecord]):
    """The texts of one file in order, and how much of it has been read. A context manager that closes the file."""

    def __init__(self, source: TextSource):
        self.source = source
        # What was guessed or may surprise, as sentences. Guesses are there once the first text was read.
        self.notices: list[str] = []
        self._raw: BinaryIO | None = None
        self._size, self._num_rows, self._row = 0, 0, 0
        format, codec = format_of(source)
        if not source.is_stdin:
            self._raw = open_bytes(Path(source.path))
            status = os.fstat(self._raw.fileno())
            self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        if format == "parquet":
            self._texts = self._open_table()
        else:
            raw = self._raw or sys.stdin.buffer
            lines = Lines(raw, source.name, codec, source.max_line_bytes, source.encoding, self.notices)
            self._texts = LINE_READERS[format](lines, source, self.notices)

    @property
    def fraction(self) -> float | None:
        """How much has been read, 0 to 1: by rows in Parquet, else by bytes. None where nobody can know."""
        if self._num_rows:
            return self._row / self._num_rows
        if self._raw is None or not self._size:
            return None
        return 1.0 if self._raw.closed else min(1.0, self._raw.tell() / self._size)

    def __next__(self) -> TextRecord:
        self._row, text = next(self._texts)
        return TextRecord(text, self.source.name, self._row)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()

    def _open_table(self) -> Iterator[tuple[int, str]]:
        table = open_table(self.source, self._raw if self._size else None)
        self._num_rows = table.metadata.num_rows
        return read_table(table, self.source, self.notices)


def open_table(source: TextSource, stream: BinaryIO | None) -> pq.ParquetFile:
    if stream is None:
        source.fail("not a Parquet file (it is empty, or a pipe)")
    try:
        # Buffered pages instead of whole row groups: a file of one row group stays out of memory too.
        return pq.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        source.fail(f"not a Parquet file, or a broken one ({_first_line(error)})")


def read_texts(
    path: str | Path,
    *,
    column: str | None = None,
    format: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    null_as_empty: bool = False,
) -> TextReader:
    """The texts of `path`. Without `column`, "text" is read, or the one likely column of a table, which `notices` then
    names."""
    return TextSource(path, column, format, max_line_bytes, null_as_empty).read()


def format_of(source: TextSource) -> tuple[str, str | None]:
    path = Path(str(source.path).lower())
    codec = CODECS.get(path.suffix)
    ending = path.with_suffix("").suffix if codec else path.suffix
    chosen = source.format or ENDINGS.get(ending) or ("txt" if source.is_pipe else None)
    if chosen not in FORMATS:
        if not source.format and kind_of_path(source.path) != "file":
            open_bytes(Path(source.path)).close()  # a missing file or a folder has a better message
        shown = f"the format {source.format!r}" if source.format else f"the file ending {ending!r}"
        hint = f"known: {', '.join(FORMATS)}, also with .gz or .zst; `format` overrides the ending"
        source.fail(f"{shown} is not known", hint=hint)
    if chosen == "parquet" and (codec or source.is_pipe):
        source.fail("Parquet is read from a plain file only", hint="it compresses inside; unpack or save it first")
    return chosen, codec


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _json_type(value: object) -> str:
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
        str: "a text",
    }
    return names.get(type(value), "null" if value is None else type(value).__name__)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
