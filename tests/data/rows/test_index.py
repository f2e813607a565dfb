"""Where records begin: against the plain reading of the same bytes, for any size of block."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.data.rows import file_bytes
from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.index import Index, build_index

PIECES = ["a", '"', "\n", "\r\n", "\n\n", " ", "\t", "ä", "bcdefgh", ",", " \n"]


def opened(path: Path, content: bytes) -> FileBytes:
    path.write_bytes(content)
    return FileBytes(os.open(path, os.O_RDONLY), str(path))


def places(index: Index) -> list[tuple[int, int]]:
    return [(int(index.starts[number]), index.line(number)) for number in range(len(index))]


def plain_records(content: bytes, quoted: bool, spaces: bytes) -> list[tuple[int, int]]:
    """First byte and line of each record, by reading byte after byte."""
    found, start, first_line, line, is_open = [], 0, 1, 1, False
    for place in range(len(content) + 1):
        character = content[place : place + 1]
        is_open ^= quoted and character == b'"'
        at_end = place == len(content)
        if (character == b"\n" and not is_open) or (at_end and start < place):
            if content[start:place].strip(spaces):
                found.append((start, first_line))
            start, first_line = place + 1, line + 1
        line += character == b"\n"
    return found


@settings(max_examples=40)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from([1, 2, 3, 7, 1 << 20]), st.booleans())
def test_records_are_those_of_a_plain_reading(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], block: int, quoted: bool
) -> None:
    content = "".join(pieces).encode()
    source = opened(tmp_path_factory.mktemp("index") / "a", content)
    for spaces in (b"\r", b" \t\r"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_bytes, "BLOCK", block)
            index = build_index(source, quoted=quoted, spaces=spaces)
        assert places(index) == plain_records(content, quoted, spaces)
        assert index.starts[-1] == len(content)


def test_paragraphs_begin_after_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\n\na\nb\n \t\nc\n\n\r\nd\ne"
    for block in (1, 4, 100):
        monkeypatch.setattr(file_bytes, "BLOCK", block)
        index = build_index(opened(tmp_path / "a", content), quoted=False, spaces=b" \t\r", paragraphs=True)
        assert places(index) == [(2, 3), (9, 6), (14, 9)]
        assert index.num_blank == 5


def test_a_byte_order_mark_is_no_part_of_the_first_record(tmp_path: Path) -> None:
    index = build_index(opened(tmp_path / "a", b"\xef\xbb\xbfa\nb"), quoted=False, spaces=b"\r")
    assert places(index) == [(3, 1), (5, 2)]


def test_only_jumps_are_kept_of_the_lines(tmp_path: Path) -> None:
    index = build_index(opened(tmp_path / "a", b"a\n" * 50 + b'"x\ny"\n' + b"b\n" * 50), quoted=True, spaces=b"\r")
    assert index.jumps.tolist() == [51] and index.surplus.tolist() == [1]
    assert [index.line(number) for number in (0, 49, 50, 51, 100)] == [1, 50, 51, 53, 102]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    for content in (b"", b"\n\r\n", b"\xef\xbb\xbf"):
        assert len(build_index(opened(tmp_path / "a", content), quoted=True, spaces=b"\r")) == 0
