"""Turns a stream of bytes in any encoding into a stream of UTF-8, and names the byte that does not fit."""

import codecs
import io
from typing import Any, BinaryIO

from bertie.errors import InputError

BLOCK = 1 << 16
UTF_8 = "utf-8"
# The longer mark first: that of UTF-32 begins with that of UTF-16.
MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
MARK = "\ufeff"  # the byte-order mark, once decoded
CHOICES = ("gb18030", "latin-1")


def known_encoding(name: str) -> str:
    """The usual name of a text encoding; ValueError where there is none of this name."""
    try:
        found = codecs.lookup(name.strip())
        "".encode(found.name)  # refuses codecs that are no text encodings, like base64
    except (LookupError, ValueError, UnicodeError):
        raise ValueError(f"{name!r} is not a text encoding, like utf-8, utf-16, gb18030 or latin-1") from None
    if found.name in (UTF_8, "utf-8-sig", "ascii"):
        return UTF_8
    return found.name if found.name.startswith("utf") else name.strip().lower()


def marked_encoding(start: bytes) -> str | None:
    """The encoding that a byte-order mark shows, unless it is UTF-8."""
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), None)


def encoding_of(start: bytes, name: str, stated: str | None, notices: list[str]) -> str:
    """The encoding of a file that starts with these bytes. A mark decides; what may surprise goes to `notices`."""
    if marked := marked_encoding(start):
        if stated != marked:
            notices.append(f"{name}: read as {marked.upper()}, by its byte-order mark")
        return marked
    chosen = stated or UTF_8
    if chosen != UTF_8 and is_utf8_text(start):
        notices.append(f"{name}: read as {chosen}, as `encoding` says, but it looks like UTF-8")
    return chosen


def is_utf8_text(start: bytes) -> bool:
    """Whether the bytes are UTF-8 beyond doubt: they have more than ASCII, and all of it is valid."""
    try:
        # A sequence may be cut at the end.
        return not codecs.getincrementaldecoder(UTF_8)().decode(start).isascii()
    except UnicodeDecodeError:
        return False


def likely_encoding(raw: bytes) -> str:
    """The encoding to suggest for bytes that are not UTF-8."""
    try:
        text = raw.decode("gb18030")
    except UnicodeDecodeError:
        return "latin-1"
    ideographs = sum("\u4e00" <= sign <= "\u9fff" for sign in text)
    return "gb18030" if ideographs > 1 else "latin-1"


def wrong_byte(raw: bytes, error: UnicodeDecodeError) -> tuple[str, str]:
    """What is wrong with a line that is not UTF-8, and what to do where `encoding` is an option."""
    likely = likely_encoding(raw)
    other = next(name for name in CHOICES if name != likely)
    hint = f"give its `encoding`, such as {likely} or {other}, or save it as UTF-8"
    return f"not UTF-8: byte 0x{raw[error.start]:02X}", hint


class Utf8Stream(io.RawIOBase):
    """The text of a stream in another encoding, as UTF-8."""

    def __init__(self, stream: BinaryIO | io.BufferedReader, name: str, encoding: str):
        self._stream, self._name, self._encoding = stream, name, encoding
        self._decoder: Any = codecs.getincrementaldecoder(encoding)()
        self._ready, self._line, self._ended, self._begun = b"", 1, False, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            block = self._stream.read(BLOCK)
            self._ended = not block
            self._ready = self._recode(block or b"")
        part = self._ready[: len(buffer)]
        self._ready = self._ready[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def _recode(self, block: bytes) -> bytes:
        try:
            text: str = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._encoding, "replace")
            where = f"{self._name}:{self._line + before.count(chr(10))}"
            what = f"not {self._encoding}: byte 0x{error.object[error.start]:02X}"
            raise InputError(what, where=where, hint="give the `encoding` that the file has") from None
        except UnicodeError as error:
            hint = f"name the byte order: {self._encoding}-le or {self._encoding}-be"
            raise InputError(f"not {self._encoding} ({error})", where=self._name, hint=hint) from None
        self._line += text.count("\n")
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix(MARK)
        return text.encode(UTF_8)
