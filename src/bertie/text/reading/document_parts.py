"""Reads the documents of a part of a file. A part is a range that starts and ends at document boundaries: bytes of text
files (of their content, where compressed), row groups of Parquet, and the whole of CSV and TSV files."""

import html
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from bertie.spec import Spec
from bertie.text.reading.byte_ranges import ByteRange
from bertie.text.reading.encodings import UTF_8
from bertie.text.reading.files import TextSource, open_table, parse_object, read_table, without_blank
from bertie.text.reading.lines import MAX_LINE_BYTES, Lines, open_bytes, refuse, refuse_long

Format = Literal["txt", "jsonl", "csv", "tsv", "parquet", "wikiextractor"]
Boundary = Literal["blank-line", "line", "file"]

NAMING_FIELDS = ("title", "id", "name")  # of a JSON object, in this order
_DOC_START = re.compile(r"\s*<doc\b([^>]*)>\s*")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
DOC_END = "</doc>"


class Document(NamedTuple):
    """A text, what it is called (its title where the file states one), and where it stood: "file:line"."""

    text: str
    name: str
    where: str


class DocumentOptions(Spec):
    """How documents are found in the sources."""

    column: str | None = Field(default=None, description="column or JSON field of the texts")
    format: Format | None = Field(default=None, description="replaces what the file's ending says")
    boundary: Boundary = Field(default="blank-line", description="what ends a document in a txt file")
    max_line_bytes: int = Field(default=MAX_LINE_BYTES, gt=0)
    null_as_empty: bool = False
    slice_bytes: int = Field(default=12_000_000, gt=0, description="about how much text a slice has")
    # Files in another encoding are copied as UTF-8 before they are cut, so that slices do not depend on it.
    encoding: str = Field(default=UTF_8, exclude=True)


class Part(Spec):
    """A range of one file: bytes for text formats, row groups for Parquet. `first_line` is a row number in Parquet."""

    path: str
    shown: str  # the file's name in messages
    format: Format
    codec: str | None = None
    start: int = 0
    stop: int
    first_line: int = 1
    size: int  # bytes of text, roughly
    digest: str  # of the content

    def read(self, options: DocumentOptions) -> Iterator[Document]:
        source = TextSource(
            self.path,
            options.column,
            self.format,
            options.max_line_bytes,
            options.null_as_empty,
            shown=self.shown,
        )
        if self.format == "parquet":
            return self._read_table(source)
        if self.format in ("csv", "tsv"):
            return self._read_rows(source)
        return self._read_lines(_reader(self.format, options.boundary), source)

    def _read_lines(self, read: "LineReader", source: TextSource) -> Iterator[Document]:
        with ByteRange(Path(self.path), self.codec, self.start, self.stop) as stream:
            lines = Lines(stream, self.shown, max_line_bytes=source.max_line_bytes, encoding=UTF_8)
            lines.number, lines.offset = self.first_line - 1, self.start
            yield from read(lines, source)

    def _read_rows(self, source: TextSource) -> Iterator[Document]:
        with source.read() as reader:
            for record in reader:
                where = f"{self.shown}:{record.line}"
                yield Document(record.text, where, where)

    def _read_table(self, source: TextSource) -> Iterator[Document]:
        with open_bytes(Path(self.path)) as stream:
            table = open_table(source, stream if os.fstat(stream.fileno()).st_size else None)
            for row, text in read_table(table, source, [], range(self.start, self.stop), self.first_line):
                where = f"{self.shown}:{row}"
                yield Document(text, where, where)


LineReader = Callable[[Lines, TextSource], Iterator[Document]]


def _read_paragraphs(lines: Lines, source: TextSource) -> Iterator[Document]:
    """A blank line ends a document."""
    gathered: list[str] = []
    first = size = 0
    for line in lines:
        if not line.isspace():
            first = first or lines.number
            size = _bounded(size + len(line), source, first)
            gathered.append(line)
        elif gathered:
            yield _untitled("".join(gathered), source, first)
            gathered, first, size = [], 0, 0
    if gathered:
        yield _untitled("".join(gathered), source, first)


def _bounded(size: int, source: TextSource, first: int, doubt: str = "should each line be one?") -> int:
    """Every later step holds a whole document in memory, many times over."""
    if size > source.max_line_bytes:
        refuse_long(source.name, first, source.max_line_bytes, f"the document ({doubt}) is")
    return size


def _read_each_line(lines: Lines, source: TextSource) -> Iterator[Document]:
    for line in lines:
        yield _untitled(line, source, lines.number)


def _read_file(lines: Lines, source: TextSource) -> Iterator[Document]:
    gathered, size = [], 0
    for line in lines:
        size = _bounded(size + len(line), source, 1)
        gathered.append(line)
    yield Document("".join(gathered), source.name, f"{source.name}:1")


def _read_jsonl(lines: Lines, source: TextSource) -> Iterator[Document]:
    for line, content in without_blank(lines, source, []):  # counted when the file was cut
        text, whole = parse_object(source, line, content)
        where = f"{source.name}:{line}"
        stated = next((whole[field] for field in NAMING_FIELDS if whole.get(field) not in (None, "")), where)
        yield Document(text, str(stated) if isinstance(stated, str | int) else where, where)


def _read_wikiextractor(lines: Lines, source: TextSource) -> Iterator[Document]:
    """<doc id="12" url="..." title="Anarchism">, the text in lines, </doc>."""
    gathered: list[str] | None = None
    first, size, name = 0, 0, ""
    for line in lines:
        start = _DOC_START.fullmatch(line) if line.lstrip().startswith("<doc") else None
        if start and gathered is not None:
            source.fail(f"a document starts before the one of line {first} ended", lines.number, "close it: </doc>")
        elif start:
            attributes = dict(_ATTRIBUTE.findall(start[1]))
            gathered, first, size = [], lines.number, 0
            stated = attributes.get("title") or attributes.get("id") or ""
            name = html.unescape(stated) or f"{source.name}:{first}"
        elif gathered is None:
            if not line.isspace():
                source.fail("there is text outside of <doc ...> and </doc>", lines.number, "is it another format?")
        elif line.strip() == DOC_END:
            yield Document("".join(gathered), name, f"{source.name}:{first}")
            gathered = None
        else:
            size = _bounded(size + len(line), source, first, "is a </doc> missing?")
            gathered.append(line)
    if gathered is not None:
        refuse(source.name, "the document is not closed", first, "the file is cut off: download it again")


def _untitled(text: str, source: TextSource, line: int) -> Document:
    where = f"{source.name}:{line}"
    return Document(text.rstrip("\r\n"), where, where)


def _reader(format: str, boundary: Boundary) -> LineReader:
    if format == "txt":
        return {"blank-line": _read_paragraphs, "line": _read_each_line, "file": _read_file}[boundary]
    return {"jsonl": _read_jsonl, "wikiextractor": _read_wikiextractor}[format]
