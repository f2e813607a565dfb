"""Reads a file's bytes by position; a compressed file is unpacked once."""

import os
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bertie.errors import InputError
from bertie.text.reading.lines import CODECS, STANDARD_INPUT, open_bytes, read_or_refuse, refuse, unpack

BLOCK = 1 << 22
MARK = b"\xef\xbb\xbf"  # the byte order mark that some programs put before UTF-8


class FileBytes:
    """Reads by position, so that processes that share it do not move each other's place. Nothing is mapped: the pages
    of a mapped file count as the process's memory, and an epoch in random order touches all of them."""

    def __init__(self, handle: int, name: str):
        self.name, self._handle = name, handle
        weakref.finalize(self, os.close, handle)
        self.size = os.fstat(handle).st_size
        self.begin = len(MARK) if self.head(len(MARK)) == MARK else 0

    def read(self, start: int, stop: int) -> bytes:
        found = os.pread(self._handle, stop - start, start)
        if len(found) != stop - start:
            raise InputError("the file became shorter while it was read", where=self.name, hint="start again")
        return found

    def head(self, num_bytes: int) -> bytes:
        return self.read(0, min(num_bytes, self.size))

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Where each block begins, and its bytes."""
        for start in range(0, self.size, BLOCK):
            yield start, self.read(start, min(start + BLOCK, self.size))

    def whole(self) -> bytes:
        return b"".join(block for _, block in self.blocks())[self.begin :]


def open_file(path: Path, notices: list[str]) -> FileBytes:
    """A compressed file and standard input ("-") are copied once, into a temporary file that has no name and ends with
    the process."""
    if str(path) == "-":
        if sys.stdin is None:
            refuse(STANDARD_INPUT, "it is closed", hint="give a file")
        return _copied(sys.stdin.buffer, STANDARD_INPUT)
    codec = CODECS.get(path.suffix.lower())
    with open_bytes(path) as raw:
        if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            refuse(str(path), "this is not a plain file, and rows are read by position", hint="save it to a file first")
        if codec is None:
            return FileBytes(os.dup(raw.fileno()), str(path))
        with unpack(raw, codec) as stream:
            found = _copied(stream, str(path))
    notices.append(f"{path}: unpacked to a temporary file of {found.size:,} bytes in {tempfile.gettempdir()}")
    return found


def _copied(stream: BinaryIO, name: str) -> FileBytes:
    with tempfile.TemporaryFile() as spool:
        while block := read_or_refuse(lambda: stream.read(BLOCK), name, 1):
            try:
                spool.write(block)
            except OSError as error:
                refuse(name, f"there is no room for a copy of it ({error.strerror})", hint="set TMPDIR")
        spool.flush()
        return FileBytes(os.dup(spool.fileno()), name)
