"""Columns that belong together as one list."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.rows.gathered_rows import GatheredRows, gathered, lettered_columns, numbered_columns
from bertie.data.rows.opening import open_rows
from bertie.errors import InputError

NAMES = ("candidates", "choices", "endings", "options")
SWAG = "sent1,ending0,ending1,ending2,label\nA cat,sat.,ran.,flew.,1\nA dog,barks.,meows.,,0\n"


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (("text", "ending1", "ending0", "ending2", "label"), ["ending0", "ending1", "ending2"]),
        (("choice1", "choice2"), ["choice1", "choice2"]),
        (("Option_1", "Option_2"), ["Option_1", "Option_2"]),
        (tuple(f"choices {number}" for number in range(11)), [f"choices {number}" for number in range(11)]),
        (("ending0",), []),
        (("ending0", "ending2"), []),
        (("ending2", "ending3"), []),
        (("weekending0", "weekending1"), []),
    ],
)
def test_numbered_columns(columns: tuple[str, ...], found: list[str]) -> None:
    assert numbered_columns(columns, NAMES) == found


def test_lettered_columns() -> None:
    assert lettered_columns(("question", "B", "A", "D", "C", "answer")) == ["A", "B", "C", "D"]
    assert lettered_columns(("B", "C")) == []


def test_a_list_of_the_columns_in_each_row(write: Callable[[str, str], Path]) -> None:
    rows, named = gathered(open_rows(write("swag.csv", SWAG)), "candidates", NAMES, {"text": "sent1"})
    assert named == {"text": "sent1", "candidates": "candidates"}
    assert [row.values["candidates"] for row in rows] == [["sat.", "ran.", "flew."], ["barks.", "meows."]]
    assert rows.row(1).where.endswith("swag.csv:3") and rows.row(0).values["label"] == "1"
    assert rows.columns[-1] == "candidates" and rows.num_rows == 2
    assert "candidates are the columns 'ending0', 'ending1', 'ending2'" in rows.notices


def test_columns_as_they_are_named(write: Callable[[str, str], Path]) -> None:
    plain = open_rows(write("swag.csv", SWAG))
    rows, _ = gathered(plain, "candidates", NAMES, {"candidates": "ending2, ending0"})
    assert isinstance(rows, GatheredRows) and rows.row(0).values["candidates"] == ["flew.", "sat."]
    with pytest.raises(InputError, match="there is no column 'ending9'; its columns are: 'sent1', 'ending0'"):
        gathered(plain, "candidates", NAMES, {"candidates": "ending0,ending9"})
    same, named = gathered(plain, "candidates", NAMES, {"candidates": "label"})
    assert same is plain and named == {"candidates": "label"}


def test_a_column_that_has_the_name_alone_is_left_to_be_guessed(write: Callable[[str, str], Path]) -> None:
    lines = write("choices.jsonl", '{"text": "a", "choices": ["b", "c"], "ending0": 1, "ending1": 2}\n')
    rows, named = gathered(open_rows(lines), "candidates", NAMES, {})
    assert not isinstance(rows, GatheredRows) and named == {}
