"""JSON lines and lists of objects: fields as they are, and the line of whatever is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.data.rows import RowError, open_rows
from bertie.errors import InputError

Writer = Callable[[str, str | bytes], Path]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.text("abc", min_size=1), values, max_size=3), max_size=5), st.booleans())
def test_objects_come_back_from_lines_and_lists(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, object]], is_ascii: bool
) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = "".join(json.dumps(item, ensure_ascii=is_ascii) + "\n" for item in objects)
    (folder / "a.jsonl").write_bytes(lines.encode())
    (folder / "a.json").write_bytes(json.dumps(objects, ensure_ascii=is_ascii, indent=1).encode())
    for name in ("a.jsonl", "a.json"):
        assert [row.values for row in open_rows([folder / name])] == objects


def test_lines_are_counted_and_blank_ones_left_out(write: Writer) -> None:
    lines = write("a.jsonl", '\ufeff{"a": 1}\r\n\n  \n{"b": 2}')
    assert [row.where for row in open_rows([lines])] == [f"{lines}:1", f"{lines}:4"]
    items = write("a.json", ' [\n {"a": "x\\ny"},\n\n\n {"b":\n 2}, {"c": 3}\n]\n')
    assert [row.where for row in open_rows([items])] == [f"{items}:2", f"{items}:5", f"{items}:6"]


def test_columns_are_all_fields_in_their_order(write: Writer) -> None:
    rows = open_rows([write("a.jsonl", '{"text": "a", "label": 1}\n{"label": 2, "note": null}\n')])
    assert rows.columns == ("text", "label", "note")
    assert rows.row(1).values == {"label": 2, "note": None}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": 1', "a.jsonl:2: not valid JSON (Expecting ',' delimiter, column 8)"),
        ("[1, 2]", "a.jsonl:2: the row is list, not an object"),
        ('{"a": "\\ud83d"}', "a.jsonl:2: the row has half a surrogate pair"),
    ],
)
def test_a_wrong_line_is_named(write: Writer, line: str, message: str) -> None:
    rows = open_rows([write("a.jsonl", f'{{"a": "\\ud83d\\ude00"}}\n{line}\n{{"a": 1}}\n')])
    assert rows.row(0).values == {"a": "😀"} and rows.row(2).values == {"a": 1}
    with pytest.raises(RowError) as raised:
        rows.row(1)
    assert message in str(raised.value)


def test_a_file_without_any_object_is_refused_at_once(write: Writer) -> None:
    with pytest.raises(RowError, match=r"a\.jsonl:1: not valid JSON"):
        open_rows([write("a.jsonl", "text,label\na,1\n")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"a": 1},\n{"a": 2', "a.json:2: not valid JSON"),
        ('[{"a": 1}\n{"a": 2}]', "a.json:2: this is not how a list of objects"),
        ('[{"a": 1},\n]', "a.json:2: not valid JSON"),
        ('[{"a": 1}]\n[]', "a.json:1: there is something after the list: '[]'"),
        (b'[{"a": 1},\n{"a": "\xe9"}]', "a.json:2: not UTF-8: byte 0xE9"),
    ],
)
def test_a_broken_list_is_refused_with_its_line(write: Writer, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as raised:
        open_rows([write("a.json", content)])
    assert message in str(raised.value)


def test_a_list_may_hold_something_else(write: Writer) -> None:
    rows = open_rows([write("a.json", '[{"a": 1},\n 7]')])
    with pytest.raises(RowError, match=r"a\.json:2: the row is int, not an object"):
        rows.row(1)
    assert open_rows([write("b.json", "[ ]")]).num_rows == 0
