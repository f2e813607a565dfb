"""Turns a range of a file's bytes into a stream. Of a compressed file the unpacked bytes count.

A compressed file cannot be read from the middle. The process keeps the stream that it read last, so that ranges taken
in ascending order unpack the file once in each process, whatever the number of ranges.
"""

import io
from pathlib import Path
from typing import Any

from bertie.text.reading.lines import open_bytes, read_or_refuse, unpack

BLOCK = 1 << 20


class ByteRange(io.RawIOBase):
    """The bytes from start to stop of a file; a context manager that closes it, or keeps it for the next range."""

    def __init__(self, path: Path, codec: str | None, start: int, stop: int):
        self._left = stop - start
        self._unpacked = _unpacked_at(path, codec, start) if codec else None
        if self._unpacked is not None:
            self._stream: Any = self._unpacked.stream
        else:
            self._stream = open_bytes(path)
            self._stream.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block: bytes = self._stream.read(min(len(buffer), self._left))
        buffer[: len(block)] = block
        self._left -= len(block)
        if self._unpacked is not None:
            self._unpacked.position += len(block)
        return len(block)

    def close(self) -> None:
        if not self.closed and self._unpacked is not None:
            _keep(self._unpacked)
        elif not self.closed:
            self._stream.close()
        super().close()


class _Unpacked:
    """An open compressed file and how far its content was read."""

    def __init__(self, path: Path, codec: str):
        self._raw = open_bytes(path)
        self.key = _key(path, codec)
        self.stream = unpack(self._raw, codec)
        self.position = 0

    def close(self) -> None:
        self.stream.close()
        self._raw.close()


# At most one. Taken out while in use, so that two readers of one process never share a stream.
_kept: list[_Unpacked] = []


def _key(path: Path, codec: str) -> tuple[str, str, int, int]:
    status = path.stat()
    return str(path.absolute()), codec, status.st_size, status.st_mtime_ns


def _keep(unpacked: _Unpacked) -> None:
    _kept.append(unpacked)
    while len(_kept) > 1:
        _kept.pop(0).close()


def _unpacked_at(path: Path, codec: str, start: int) -> _Unpacked:
    unpacked = _kept.pop() if _kept else None
    if unpacked is not None and (unpacked.position > start or unpacked.key != _key(path, codec)):
        unpacked.close()
        unpacked = None
    if unpacked is None:
        unpacked = _Unpacked(path, codec)
    while unpacked.position < start:
        wanted, stream = min(BLOCK, start - unpacked.position), unpacked.stream
        # Bound as defaults: the closure is called before the loop goes on.
        block = read_or_refuse(lambda stream=stream, wanted=wanted: stream.read(wanted), str(path), 1)  # type: ignore[misc]
        if not block:
            break
        unpacked.position += len(block)
    return unpacked
