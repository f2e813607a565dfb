"""Turns a file or standard input, plain or compressed, into decoded lines, one at a time, or raises an
`InputError` that names the file, the line and what to do: not UTF-8, binary, broken compression, too long."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa
from isal import igzip, isal_zlib

from bertie.errors import InputError
from bertie.text.reading.encodings import MARK, UTF_8, Utf8Stream, encoding_of, wrong_byte
from bertie.text.reading.paths import kind_of_path, shorten_path

MAX_LINE_BYTES = 10_000_000
# isal's own error has no type that a checker could see.
UNPACKING_ERRORS: Any = (EOFError, isal_zlib.error, zlib.error, gzip.BadGzipFile, pa.ArrowException)
CODECS = {".gz": "gzip", ".zst": "zstd"}
STANDARD_INPUT = "standard input"  # its name in messages
SIGNATURES = {
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PK\x03\x04": "a zip file",
    b"PAR1": "a Parquet file",
    b"%PDF-": "a PDF",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\x7fELF": "a program",
}


def refuse(name: str, what: str, line: int | None = None, hint: str | None = None) -> NoReturn:
    raise InputError(what, where=name if line is None else f"{name}:{line}", hint=hint)


def refuse_long(name: str, line: int, limit: int, what: str = "the line is") -> NoReturn:
    hint = "split it, or raise the limit with `max_line_bytes`"
    refuse(name, f"{what} longer than the limit of {limit:,} bytes", line, hint)


def refuse_binary(start: bytes, name: str) -> None:
    """`start` is the beginning of what should be text."""
    for signature, kind in SIGNATURES.items():
        if start.startswith(signature):
            refuse(name, f"this is a binary file ({kind}), not text", hint="give it the ending of what it is")
    if b"\0" in start:
        refuse(name, "this is a binary file, not text (it has NUL bytes)", hint="give a file of UTF-8 text")


def open_bytes(path: Path) -> BinaryIO:
    """The file, unbuffered, so that its position shows how much was read. Of a pipe, what is read is gone."""
    kind = kind_of_path(path)
    if kind == "folder":
        refuse(str(path), "this is a folder, not a file", hint="give one file")
    if kind == "device":
        refuse(str(path), "this is a device, not a file", hint="give a file or a pipe")
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        refuse(shorten_path(path), "there is no such file", hint="check the path")
    except OSError as error:
        refuse(shorten_path(path), f"the file cannot be opened ({error.strerror})")


def unpack(stream: Any, codec: str | None) -> io.BufferedReader:
    """The bytes inside a compressed stream, or those of a plain one, buffered."""
    if codec == "gzip":
        stream = igzip.IGzipFile(fileobj=stream)
    elif codec:
        stream = pa.CompressedInputStream(stream, codec)
    return stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream, 1 << 16)


def read_or_refuse(read: Callable[[], bytes], name: str, line: int) -> bytes:
    try:
        return read()
    except UNPACKING_ERRORS as error:
        reason: Exception = error
    except OSError as error:
        if error.errno is not None:  # None is how pyarrow reports a stream that it cannot unpack
            refuse(name, f"reading failed ({error.strerror})", line)
        reason = error
    refuse(name, f"the compressed data is broken or cut off ({reason})", line, "download the file again")


class Lines:
    """Iterates over lines as text, ends kept; `number` is the last line's, from 1. Only "\\n" ends a line: "\\u2028"
    and its like are part of a text. A byte-order mark at the start is taken off.

    `encoding` is what the user said; None where that is no option. A mark at the start wins over it."""

    def __init__(
        self,
        stream: Any,
        name: str,
        codec: str | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        encoding: str | None = None,
        notices: list[str] | None = None,
    ):
        self.name, self.max_line_bytes = name, max_line_bytes
        self.number, self.offset = 0, 0  # set both for a stream that begins inside a file
        self.notices = notices if notices is not None else []
        self._stream, self._encoding = unpack(stream, codec), encoding

    def __iter__(self) -> Iterator[str]:
        self._stream = as_utf8(self._stream, self.name, self._encoding, self.notices)
        refuse_binary(self._read(lambda: self._stream.peek(8192)), self.name)
        limit = self.max_line_bytes
        # Two bytes more than the limit: room for the line's end, and no more of a line without one.
        while raw := self._read(lambda: self._stream.readline(limit + 2)):
            self.number += 1
            if len(raw) > limit and len(raw.removesuffix(b"\n").removesuffix(b"\r")) > limit:
                refuse_long(self.name, self.number, limit)
            if b"\0" in raw:
                refuse(self.name, "this is a binary file, not text (the line has a NUL byte)", self.number)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                what, hint = wrong_byte(raw, error)
                hint = hint if self._encoding else "save it as UTF-8"
                refuse(self.name, f"{what} at offset {self.offset + error.start:,} of the text", self.number, hint)
            self.offset += len(raw)
            yield text.removeprefix(MARK) if self.number == 1 else text

    def _read(self, read: Callable[[], bytes]) -> bytes:
        return read_or_refuse(read, self.name, self.number + 1)


def as_utf8(stream: io.BufferedReader, name: str, stated: str | None, notices: list[str]) -> io.BufferedReader:
    """The stream as UTF-8: by its mark, or the encoding that is stated."""
    start = read_or_refuse(lambda: stream.peek(8192), name, 1)
    encoding = encoding_of(start, name, stated, notices)
    return stream if encoding == UTF_8 else io.BufferedReader(Utf8Stream(stream, name, encoding), 1 << 16)
