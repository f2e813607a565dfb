"""csv and tsv: the rows of Python's own csv module, each found by its number; every mistake with its file and line."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.data.rows import RowError, Rows, open_rows
from bertie.errors import InputError

Writer = Callable[[str, str | bytes], Path]
Values = Callable[[Rows], list[list[object]]]

NASTY = {
    "line breaks in cells": 'id,text\n1,"a\nb\n\nc"\n2,d\n',
    "doubled quotes": 'id,text\n1,"say ""so"", he said"\n2,""""\n3,""\n',
    "Windows": 'id,text\r\n1,"a\r\nb"\r\n2,c\r\n',
    "no last newline": "id,text\n1,a\n2,b",
    "no last newline after a quote": 'id,text\n1,a\n2,"b"',
    "blank lines": "id,text\n\n1,a\n\r\n\n2,b\n\n",
    "quotes inside plain cells": 'id,text\n1,5" and 6"\n2,b\n',
    "a long cell": f'id,text\n1,"{"x" * 300_000}"\n2,{"y" * 300_000}\n',
    "empty cells": "id,text\n1,\n,a\n,\n",
    "other line breaks": "id,text\n1,a\u2028b\x0bc\x85\n2,b\n",
}


def by_csv_module(content: str) -> list[list[str]]:
    return [cells for cells in csv.reader(io.StringIO(content, newline="")) if cells]


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_rows_are_those_of_the_csv_module(name: str, mark: str, write: Writer, values_of: Values) -> None:
    csv.field_size_limit(1_000_000)
    header, *wanted = by_csv_module(NASTY[name])
    rows = open_rows([write("a.csv", mark + NASTY[name])], header=True)
    assert list(rows.columns) == header
    assert values_of(rows) == wanted
    assert [list(rows.row(number).values.values()) for number in reversed(range(len(rows)))] == wanted[::-1]


cells = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from('",\n\r \t'), max_size=8
)


@settings(max_examples=40)
@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), max_size=6)),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_csv_carries_any_cells(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[str]], end: str, quoting: int, is_cut: bool
) -> None:
    table = [row for row in table if row != [""]]  # the module writes it as "", older ones as a blank line
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=end, quoting=quoting).writerows(table)  # type: ignore[arg-type]
    content = buffer.getvalue()
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_bytes((content.removesuffix(end) if is_cut else content).encode())
    rows = open_rows([path], header=False)
    assert [list(row.values.values()) for row in rows] == table


def test_a_row_is_named_by_the_line_where_it_begins(write: Writer) -> None:
    path = write("a.csv", 'id,text\r\n1,"a\r\nb"\r\n\r\n2,c\r\n3,d')
    assert [row.where for row in open_rows([path])] == [f"{path}:{line}" for line in (2, 5, 6)]


def test_tsv_takes_quotes_as_they_are(write: Writer, values_of: Values) -> None:
    path = write("a.tsv", 'text\tlabel\n"yes" he said\t1\r\n"no\t0\n\n"whole"\t1')
    rows = open_rows([path])
    assert values_of(rows) == [['"yes" he said', "1"], ['"no', "0"], ['"whole"', "1"]]
    assert any("quotes around cells are kept" in notice and '"whole"' in notice for notice in rows.notices)
    assert any("1 blank line is left out" in notice for notice in rows.notices)


def test_quoted_tsv_is_csv_with_tabs(write: Writer, values_of: Values) -> None:
    path = write("a.tsv", 'text\tlabel\n"a\tb\n""c"""\t1\n')
    assert values_of(open_rows([path], "quoted-tsv")) == [['a\tb\n"c"', "1"]]


def test_tsv_keeps_cells_of_white_space(write: Writer, values_of: Values) -> None:
    assert values_of(open_rows([write("a.tsv", "text\tlabel\n\t\n \t \n")])) == [["", ""], [" ", " "]]


@pytest.mark.parametrize(
    ("name", "content", "row", "message"),
    [
        ("a.csv", "id,text\n1,a\n2,b,c\n", 1, "a.csv:3: the row has 3 cells, not 2; a cell with a comma"),
        ("a.csv", "id,text\n1\n2,b\n", 0, "a.csv:2: the row has 1 cells, not 2"),
        ("a.tsv", "id\ttext\n1\ta\n2\n", 1, "a.tsv:3: the row has 1 cells, not 2; a cell has no tab"),
        ("a.csv", b"id,text\n1,a\n2,caf\xe9\n", 1, "a.csv:3: not UTF-8: byte 0xE9 at offset 17"),
        ("a.csv", 'id,text\n1,"a" b\n', 0, "a.csv:2: not valid CSV"),
        ("a.csv", 'id,text\n1,a\n2,"b\n3,c\n', 1, "a.csv:3: not valid CSV"),
        ("a.csv", 'id,text\n1,5" pipe\n2,6" pipe\n3,a\n', 0, "a.csv:2: not valid CSV (a quote or a line break"),
        ("a.csv", f'id,text\n1,"{"x" * 10_000_001}"\n', 0, "a.csv:2: the row is longer than the limit"),
    ],
)
def test_a_wrong_row_is_named_when_it_is_read(
    write: Writer, name: str, content: str | bytes, row: int, message: str
) -> None:
    rows = open_rows([write(name, content)], header=True)
    with pytest.raises(RowError) as raised:
        rows.row(row)
    assert message in str(raised.value)


def test_a_row_after_a_stray_quote_is_found_again(write: Writer) -> None:
    """Two stray quotes join their lines into one wrong row; the rows after them are right."""
    rows = open_rows([write("a.csv", 'id,text\n1,5" pipe\n2,6" pipe\n3,a\n')], header=True)
    assert rows.row(1) == ({"id": "3", "text": "a"}, f"{rows.name}:4")


def test_without_a_header_columns_are_numbered_and_may_end_early(write: Writer) -> None:
    lines = ["g\t1.5\ta\tb\tsource"] * 5 + ["g\t2.5\tc\td"] * 95
    rows = open_rows([write("a.tsv", "\n".join([*lines, "g\t1", "g\t1\ta\tb\tc\td"]))])
    assert rows.columns == ("column1", "column2", "column3", "column4", "column5")
    assert rows.row(7).values == {"column1": "g", "column2": "2.5", "column3": "c", "column4": "d", "column5": None}
    assert any("4 to 5 cells" in notice for notice in rows.notices)
    for number in (100, 101):
        with pytest.raises(RowError, match="cells, not 4 to 5"):
            rows.row(number)


def test_the_header_is_told_and_can_be_forced(write: Writer) -> None:
    path = write("a.csv", "text,label\ngood,pos\nbad,neg\nfine,pos\n")
    guessed, without = open_rows([path]), open_rows([path], header=False)
    assert guessed.columns == ("text", "label") and guessed.num_rows == 3
    assert any("the first row is the header: 'text', 'label'" in notice for notice in guessed.notices)
    assert without.columns == ("column1", "column2") and without.num_rows == 4 and not without.notices


def test_a_header_has_no_name_twice(write: Writer) -> None:
    path = write("a.csv", "text,text\na,b\n")
    with pytest.raises(InputError, match=r"a\.csv:1: the header has 'text' twice"):
        open_rows([path], header=True)


def test_an_empty_table_has_no_rows(write: Writer) -> None:
    for content in ("", "\n\n"):
        rows = open_rows([write("a.csv", content)])
        assert rows.num_rows == 0 and rows.columns == () and list(rows) == []
    assert open_rows([write("a.csv", "text,label")]).num_rows == 0
