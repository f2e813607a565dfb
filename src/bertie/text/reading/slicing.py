"""Cuts a file into parts at document boundaries, which it finds by reading the file once."""

import hashlib
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from bertie.text.reading.document_parts import DOC_END, DocumentOptions, Format, Part
from bertie.text.reading.files import ENDINGS, TextSource, blank_notice, open_table
from bertie.text.reading.lines import CODECS, open_bytes, read_or_refuse, refuse, refuse_long, unpack

BLOCK = 1 << 20
SAMPLE_ROWS = 1000  # of a table, which are read for what must be reported before the work
BLANK = re.compile(rb"^[ \t\r\v\f]*\n", re.MULTILINE)
BLANK_STARTS = (b"\n\n", b"\n\r", b"\n ", b"\n\t")
FORMATS: tuple[Format, ...] = ("txt", "jsonl", "csv", "tsv", "parquet", "wikiextractor")


def parts_of(
    path: Path, shown: str, options: DocumentOptions, notices: list[str], usual: Format | None = None
) -> Iterator[Part]:
    """The parts of one file in order; none where it is empty. `usual` is the format where nothing shows another."""
    format, codec = file_format(path, shown, options.format, usual)
    source = TextSource(path, options.column, format, options.max_line_bytes, options.null_as_empty, shown=shown)
    if format == "parquet":
        return _row_groups(source, shown, options, notices)
    if format in ("csv", "tsv"):
        with source.read() as reader:
            deque(islice(reader, SAMPLE_ROWS), maxlen=0)
            notices.extend(reader.notices)
        ends: Callable[[bytes], bool] = _never
    else:
        whole = format == "txt" and options.boundary == "file"
        ends = _never if whole else _ends_document(format, options)
    return _byte_ranges(path, shown, format, codec, options, ends, notices)


def file_format(
    path: Path, shown: str, stated: Format | None, usual: Format | None = None
) -> tuple[Format, str | None]:
    """Format and compression: by what was stated, the ending, or the first bytes of a file without a known ending."""
    codec = CODECS.get(path.suffix.lower())
    ending = Path(path.stem).suffix.lower() if codec else path.suffix.lower()
    named = stated or ENDINGS.get(ending)
    if named == "parquet" and codec:
        refuse(shown, "Parquet is read from a plain file only", hint="it compresses inside; unpack it first")
    if named is None or (stated is None and named == "txt"):
        named = _sniffed(path, shown, codec) or named or usual
    known = next((format for format in FORMATS if format == named), None)
    if known is None:
        hint = f"known: {', '.join(FORMATS)}, also with .gz or .zst; `format` overrides the ending"
        refuse(shown, f"the file ending {ending!r} is not known", hint=hint)
    return known, codec


def is_known(path: Path) -> bool:
    """Whether a file found in a folder is meant: by its ending, or as WikiExtractor writes it, without one."""
    codec = CODECS.get(path.suffix.lower())
    ending = Path(path.stem).suffix if codec else path.suffix
    return ending.lower() in ENDINGS or (not ending.strip(".") and _sniffed(path, str(path), codec) is not None)


def _sniffed(path: Path, shown: str, codec: str | None) -> Format | None:
    with open_bytes(path) as raw:
        start = read_or_refuse(lambda: unpack(raw, codec).read(256), shown, 1)
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<doc "):
        return "wikiextractor"
    # Only a file without an ending: a txt file may well begin with a brace.
    ending = Path(path.stem).suffix if codec else path.suffix
    return "jsonl" if start.startswith(b'{"') and not ending else None


def _never(line: bytes) -> bool:
    return False


def _ends_document(format: Format, options: DocumentOptions) -> Callable[[bytes], bool]:
    """Whether a part may end after this line."""
    if format == "wikiextractor":
        return lambda line: line.strip() == DOC_END.encode()
    if format == "txt" and options.boundary == "blank-line":
        return lambda line: not line.strip()
    return lambda line: True


def _byte_ranges(
    path: Path,
    shown: str,
    format: Format,
    codec: str | None,
    options: DocumentOptions,
    ends: Callable[[bytes], bool],
    notices: list[str],
) -> Iterator[Part]:
    with open_bytes(path) as raw:
        stream = unpack(raw, codec)
        start, line = 0, 1
        blank = _BlankLines()
        while True:
            hashed = hashlib.sha256()
            stop, next_line = start, line
            for block in _blocks(stream, shown, line, options, ends):
                hashed.update(block)
                if format == "jsonl":
                    blank.add(block)
                stop += len(block)
                next_line += block.count(b"\n")
            if stop == start:
                if blank.count:
                    notices.append(blank_notice(shown, blank.count))
                return
            yield Part(
                path=str(path),
                shown=shown,
                format=format,
                codec=codec,
                start=start,
                stop=stop,
                first_line=line,
                size=stop - start,
                digest=hashed.hexdigest(),
            )
            start, line = stop, next_line


class _BlankLines:
    """Counts the blank lines of a file that is read in blocks."""

    def __init__(self) -> None:
        self.count, self._begun = 0, b""

    def add(self, block: bytes) -> None:
        whole = self._begun + block
        end = whole.rfind(b"\n") + 1
        self._begun = whole[end:]
        # Few files have any, and looking for their beginning is much faster than matching them.
        if whole[:1].isspace() or any(mark in whole for mark in BLANK_STARTS):
            self.count += len(BLANK.findall(whole, 0, end))


def _blocks(
    stream: io.BufferedReader, shown: str, line: int, options: DocumentOptions, ends: Callable[[bytes], bool]
) -> Iterator[bytes]:
    """The bytes of one part: whole lines, up to the first line at which a document ends once there is enough."""
    size, limit = 0, options.max_line_bytes + 2
    while size < options.slice_bytes or ends is _never:
        wanted = min(BLOCK, options.slice_bytes)
        block = read_or_refuse(lambda wanted=wanted: stream.read(wanted), shown, line)  # type: ignore[misc]
        if not block:
            return
        size += len(block)
        line += block.count(b"\n")
        yield block
        last = block[block.rfind(b"\n") + 1 :]
        if ends is _never:
            continue
        if last:
            rest = read_or_refuse(lambda: stream.readline(limit), shown, line)
            if len(rest) == limit and not rest.endswith(b"\n"):
                refuse_long(shown, line, options.max_line_bytes)
            size += len(rest)
            line += 1
            last += rest
            yield rest
        else:
            last = block[block.rfind(b"\n", 0, -1) + 1 :]
    if ends(last):
        return
    while rest := read_or_refuse(lambda: stream.readline(limit), shown, line):
        if len(rest) == limit and not rest.endswith(b"\n"):
            refuse_long(shown, line, options.max_line_bytes)
        line += 1
        yield rest
        if ends(rest):
            return


def _row_groups(source: TextSource, shown: str, options: DocumentOptions, notices: list[str]) -> Iterator[Part]:
    path = Path(source.path)
    with open_bytes(path) as stream:
        table = open_table(source, stream if os.fstat(stream.fileno()).st_size else None)
        column = source.choose_column(table.schema_arrow.names, notices)
        sizes = [_text_bytes(table, group, column) for group in range(table.num_row_groups)]
        first, row, size = 0, 1, 0
        rows = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
    with path.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    for group, group_size in enumerate(sizes):
        size += group_size
        if size < options.slice_bytes and group + 1 < len(sizes):
            continue
        yield Part(
            path=str(path),
            shown=shown,
            format="parquet",
            start=first,
            stop=group + 1,
            first_line=row,
            size=size,
            digest=digest,
        )
        row += sum(rows[first : group + 1])
        first, size = group + 1, 0


def _text_bytes(table: pq.ParquetFile, group: int, column: str) -> int:
    found = table.metadata.row_group(group)
    columns = (found.column(index) for index in range(found.num_columns))
    return sum(part.total_uncompressed_size for part in columns if part.path_in_schema.split(".")[0] == column)
