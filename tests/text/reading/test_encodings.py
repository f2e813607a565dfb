"""Streams in other encodings as UTF-8."""

import io

import pytest

from bertie.errors import InputError
from bertie.text.reading.encodings import Utf8Stream, is_utf8_text, known_encoding, likely_encoding, marked_encoding


def test_names() -> None:
    assert [known_encoding(name) for name in ("UTF8", "utf-8-sig", "ascii", "GB18030", "Latin-1", "utf_16")] == [
        "utf-8",
        "utf-8",
        "utf-8",
        "gb18030",
        "latin-1",
        "utf-16",
    ]
    for name in ("klingon", "base64", "", "a\0b"):
        with pytest.raises(ValueError, match="is not a text encoding"):
            known_encoding(name)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "gb18030", "shift_jis", "utf-16-be"])
def test_characters_on_the_border_of_a_block(encoding: str) -> None:
    text = "a房間\n" * 30_000
    stream = io.BufferedReader(Utf8Stream(io.BytesIO(text.encode(encoding)), "a.txt", encoding))
    assert stream.read().decode("utf-8") == text


def test_the_byte_and_the_line_are_named() -> None:
    raw = "房間\n".encode("gb18030") * 40_000 + b"a\xff\n"
    with pytest.raises(InputError, match=r"a\.txt:40001: not gb18030: byte 0xFF; give the `encoding`"):
        io.BufferedReader(Utf8Stream(io.BytesIO(raw), "a.txt", "gb18030")).read()


def test_what_bytes_show() -> None:
    assert marked_encoding("a".encode("utf-16")) == "utf-16" and marked_encoding("a".encode("utf-32")) == "utf-32"
    assert marked_encoding("\ufeffa".encode()) is None
    assert is_utf8_text("caf\xe9 房".encode()[:-1]) and not is_utf8_text(b"cafe")
    assert not is_utf8_text("caf\xe9\n".encode("latin-1"))
    assert likely_encoding("房间很好\n".encode("gb18030")) == "gb18030"
    assert likely_encoding("un caf\xe9 \xe0 Paris\n".encode("latin-1")) == "latin-1"


def test_utf_16_without_a_mark_is_one_sentence() -> None:
    with pytest.raises(InputError, match="name the byte order"):
        io.BufferedReader(Utf8Stream(io.BytesIO("a text\n".encode("utf-16-le")), "a.txt", "utf-16")).read()
