"""Words in columns: sentences, marks of documents, tabs or spaces, and lines of another number of columns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.rows import RowError, open_rows
from bertie.data.rows.conll_rows import ConllRows, column_names

Writer = Callable[[str, str | bytes], Path]

NEWS = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I-NP B-PER\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_sentences_become_rows_of_lists(write: Writer, end: str) -> None:
    rows = open_rows([write("a.conll", (NEWS + "\n-DOCSTART- -X- O O\n\nB c d  e\n \t\n").replace("\n", end))])
    assert rows.columns == ("words", "column2", "column3", "tags")
    assert [row.values["words"] for row in rows] == [["EU", "rejects"], ["Peter"], ["B"]]
    assert rows.row(0).values["tags"] == ["B-ORG", "O"] and rows.row(2).values["tags"] == ["e"]
    assert [row.where.rpartition(":")[2] for row in rows] == ["3", "7", "11"]
    assert any("2 -DOCSTART- lines are left out" in notice for notice in rows.notices)


def test_marks_directly_above_a_sentence_are_left_out_too(write: Writer) -> None:
    rows = open_rows([write("a.conll", "-DOCSTART-\n-DOCSTART-\nEU X\n\n-DOCSTART-\n\nUN Y\n\n-DOCSTART-")])
    assert isinstance(rows, ConllRows) and rows.num_marks == 4
    assert [(row.values["words"], row.where[-2:]) for row in rows] == [(["EU"], ":3"), (["UN"], ":7")]


def test_with_tabs_a_cell_may_hold_spaces(write: Writer) -> None:
    rows = open_rows([write("a.conll", "New York\tB-LOC\n \tO\n\u3000\tO\n")])
    assert rows.row(0).values == {"words": ["New York", " ", "\u3000"], "tags": ["B-LOC", "O", "O"]}


def test_words_alone_are_a_file_too(write: Writer) -> None:
    rows = open_rows([write("a.conll", "EU\nrejects\n\nPeter\n")])
    assert [row.values for row in rows] == [{"words": ["EU", "rejects"]}, {"words": ["Peter"]}]


def test_a_line_of_other_columns_is_named_itself(write: Writer) -> None:
    rows = open_rows([write("a.conll", NEWS + "and CC O\n")])
    assert rows.row(0).values["words"] == ["EU", "rejects"]
    with pytest.raises(RowError, match=r"a\.conll:8: the line has 3 columns, not 4"):
        rows.row(1)


def test_names_of_columns() -> None:
    assert column_names(0) == () and column_names(1) == ("words",) and column_names(2) == ("words", "tags")


def test_an_empty_file_has_no_sentences(write: Writer) -> None:
    for content in ("", "\n\n", "-DOCSTART- O\n"):
        assert open_rows([write("a.conll", content)]).num_rows == 0
