"""Turns a file or standard input, plain or compressed, into decoded lines, one at a time, or raises an
`InputError` that names the file, the line and what to do: not UTF-8, binary, broken compression, too long."""

import gzip
import io
import shlex
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa
from isal import igzip, isal_zlib

from bertie.errors import InputError

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
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        refuse(name, "this is UTF-16, not UTF-8", hint=f"convert it: {conversion(name, 'UTF-16')}")
    if b"\0" in start:
        refuse(name, "this is a binary file, not text (it has NUL bytes)", hint="give a file of UTF-8 text")


def conversion(name: str, encoding: str) -> str:
    """How to get the text as UTF-8: a command that can be run as it stands."""
    command = f"iconv -f {encoding} -t UTF-8"
    if name == STANDARD_INPUT:
        return f"pipe it through {command}"
    codec = CODECS.get(Path(name).suffix.lower())
    return f"{codec} -dc {shlex.quote(name)} | {command}" if codec else f"{command} {shlex.quote(name)}"


def open_bytes(path: Path) -> BinaryIO:
    """The file, unbuffered, so that its position shows how much was read."""
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        refuse(str(path), "there is no such file", hint="check the path")
    except IsADirectoryError:
        refuse(str(path), "this is a folder, not a file", hint="give one file of texts")
    except OSError as error:
        refuse(str(path), f"the file cannot be opened ({error.strerror})")


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
    and its like are part of a text. A byte order mark at the start is taken off."""

    def __init__(self, stream: Any, name: str, codec: str | None = None, max_line_bytes: int = MAX_LINE_BYTES):
        self.name, self.max_line_bytes = name, max_line_bytes
        self.number, self.offset = 0, 0  # set both for a stream that begins inside a file
        self._stream = unpack(stream, codec)

    def __iter__(self) -> Iterator[str]:
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
                self._refuse_encoding(raw[error.start], self.offset + error.start)
            self.offset += len(raw)
            yield text.removeprefix("\ufeff") if self.number == 1 else text

    def _read(self, read: Callable[[], bytes]) -> bytes:
        return read_or_refuse(read, self.name, self.number + 1)

    def _refuse_encoding(self, byte: int, offset: int) -> NoReturn:
        refuse(
            self.name,
            f"not UTF-8: byte 0x{byte:02X} at offset {offset:,} of the text",
            self.number,
            f"convert it from the encoding it has, for example: {conversion(self.name, 'LATIN1')}",
        )
