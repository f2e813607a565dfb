"""Plain text as rows."""

import io
from pathlib import Path

import pytest

from bertie.data.rows import RowError, open_rows
from bertie.errors import InputError


def test_every_line_that_is_not_blank_is_a_row(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes('one line\r\n\n \t\nanother\tline, "quoted\n最后'.encode())
    rows = open_rows(file, "lines")
    assert rows.columns == ("text",)
    assert [row.values["text"] for row in rows] == ["one line", 'another\tline, "quoted', "最后"]
    assert rows.notices[-1] == f"{file}: 2 blank lines are left out"
    assert rows.row(1).where == f"{file}:4"


def test_blank_lines_are_rows_where_every_line_is(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"one\r\n\n \t\nfour\n\n")
    rows = open_rows(file, "lines", every_line=True)
    assert [row.values["text"] for row in rows] == ["one", "", " \t", "four", ""]
    assert [row.where for row in rows] == [f"{file}:{line}" for line in range(1, 6)] and not rows.notices


def test_standard_input_is_read_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a"}\n{"text": "b"}\n')))
    rows = open_rows("-", "jsonl")
    assert [row.values["text"] for row in rows] == ["a", "b"] and rows.row(1).where == "standard input:2"
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input: it is closed"):
        open_rows("-", "lines")


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"good\nb\xffad\n")
    rows = open_rows(file, "lines")
    with pytest.raises(RowError, match="not UTF-8"):
        rows.row(1)


def test_with_every_line_a_blank_one_is_a_row(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"one\n\n \r\ntwo\n\n")
    rows = open_rows(file, "lines", every_line=True)
    assert [row.values["text"].strip() for row in rows] == ["one", "", "", "two", ""]
    assert rows.row(4).where == f"{file}:5" and not rows.notices
