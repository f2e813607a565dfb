"""Lines that start with their labels."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.rows import RowError, open_rows

Writer = Callable[[str, str | bytes], Path]


def test_the_first_word_is_the_label(write: Writer) -> None:
    rows = open_rows(write("a.txt", "pos  a great film \r\n\nneg so\tdull\npos\n"), "label-text")
    assert [rows.row(number).values for number in (0, 1)] == [
        {"label": "pos", "text": "a great film"},
        {"label": "neg", "text": "so\tdull"},
    ]
    with pytest.raises(RowError, match=r"a\.txt:4: the line has only one word, 'pos'"):
        rows.row(2)


def test_labels_with_a_prefix(write: Writer) -> None:
    content = "__label__pos a great film\n__label__neg __label__long so dull\n__label__a,b rest\n"
    rows = open_rows(write("train.valid", content))
    assert [row.values for row in rows] == [
        {"label": "pos", "text": "a great film"},
        {"label": ["neg", "long"], "text": "so dull"},
        {"label": ["a,b"], "text": "rest"},
    ]
    assert any("read as label-prefix, by its content" in notice for notice in rows.notices)


def test_labels_of_trec_are_seen(write: Writer) -> None:
    content = "DESC:manner How did it begin ?\nENTY:animal What barks ?\n" * 5
    rows = open_rows(write("train_5500.label", content))
    assert rows.row(0).values == {"label": "DESC:manner", "text": "How did it begin ?"}
