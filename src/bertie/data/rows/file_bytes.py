"""Reads a file's bytes by position; what cannot be read so is copied once."""

import io
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from bertie.errors import InputError
from bertie.text.reading.encodings import UTF_8, encoding_of, is_utf8_text
from bertie.text.reading.lines import CODECS, STANDARD_INPUT, as_utf8, open_bytes, read_or_refuse, refuse, unpack
from bertie.text.reading.paths import kind_of_path

BLOCK = 1 << 22
HEAD = 1 << 16  # bytes that are looked at for what the file is
MARK = b"\xef\xbb\xbf"  # the byte order mark that some programs put before UTF-8


class FileBytes:
    """Reads by position, so that processes that share it do not move each other's place. Nothing is mapped: the pages
    of a mapped file count as the process's memory, and an epoch in random order touches all of them."""

    def __init__(self, handle: int, name: str):
        self.name, self._handle = name, handle
        weakref.finalize(self, os.close, handle)
        self.size = os.fstat(handle).st_size
        self.head = self.read(0, min(HEAD, self.size))  # what shows which kind of file it is
        self.begin = len(MARK) if self.head.startswith(MARK) else 0

    def read(self, start: int, stop: int) -> bytes:
        try:
            found = os.pread(self._handle, stop - start, start)
        except OSError as error:
            raise InputError(f"reading failed ({error.strerror})", where=self.name) from None
        if len(found) != stop - start:
            raise InputError("the file became shorter while it was read", where=self.name, hint="start again")
        return found

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Where each block begins, and its bytes."""
        for start in range(0, self.size, BLOCK):
            yield start, self.read(start, min(start + BLOCK, self.size))

    def whole(self) -> bytes:
        return b"".join(block for _, block in self.blocks())[self.begin :]


def open_file(path: Path, notices: list[str], encoding: str | None = None) -> FileBytes:
    """A file as UTF-8; "-" is standard input. What is compressed, can be read only once or is not UTF-8 is copied into
    a temporary file that has no name and ends with the process. `encoding` is what the user said."""
    if str(path) == "-":
        if sys.stdin is None:
            refuse(STANDARD_INPUT, "it is closed", hint="give a file")
        return _copied(unpack(sys.stdin.buffer, None), STANDARD_INPUT, encoding, notices, "copied")
    name, codec = str(path), CODECS.get(path.suffix.lower())
    is_plain = codec is None and kind_of_path(path) != "pipe"
    with open_bytes(path) as raw:
        start = read_or_refuse(lambda: os.pread(raw.fileno(), HEAD, 0), name, 1) if is_plain else b""
        if is_plain and encoding_of(start, name, encoding, []) == UTF_8:
            return FileBytes(os.dup(raw.fileno()), name)
        return _copied(unpack(raw, codec), name, encoding, notices, "unpacked" if codec else "copied")


def _copied(stream: io.BufferedReader, name: str, encoding: str | None, notices: list[str], done: str) -> FileBytes:
    """`done` is what messages call it."""
    with tempfile.TemporaryFile() as spool:
        text = as_utf8(stream, name, encoding, notices)
        while block := read_or_refuse(lambda: text.read(BLOCK), name, 1):
            try:
                spool.write(block)
            except OSError as error:
                refuse(name, f"there is no room for a copy of it ({error.strerror})", hint="set TMPDIR")
        spool.flush()
        found = FileBytes(os.dup(spool.fileno()), name)
    notices.append(f"{name}: {done} to a temporary file of {found.size:,} bytes in {tempfile.gettempdir()}")
    return found


def is_surely_utf8(path: Path) -> bool:
    """Whether a file starts with UTF-8 that is more than ASCII. False for what can be read only once."""
    if str(path) == "-" or kind_of_path(path) != "file":
        return False
    with open_bytes(path) as raw:
        stream = unpack(raw, CODECS.get(path.suffix.lower()))
        return is_utf8_text(read_or_refuse(lambda: stream.read(HEAD), str(path), 1))
