from collections.abc import Callable
from pathlib import Path

from bertie.data.rows import Faults, good_rows, open_rows

Writer = Callable[[str, str | bytes], Path]


def test_wrong_rows_are_left_out_and_told(write: Writer) -> None:
    lines = [b"text,label", b"a,1", b"b", b"c,1", b"d,1,2", b"caf\xe9,1", b"e,1", b"f,1,2,3"]
    path = write("a.csv", b"\n".join(lines))
    faults = Faults(num_shown=2)
    assert [row.values["text"] for row in good_rows(open_rows([path], header=True), faults)] == ["a", "c", "e"]
    assert faults.counts == {"wrong number of cells": 3, "not UTF-8": 1} and faults.counts.total() == 4
    assert str(faults).splitlines() == [
        "4 rows are left out:",
        "  wrong number of cells: 3, the first 2 of them",
        f"    {path}:3: the row has 1 cells, not 2",
        f"    {path}:5: the row has 3 cells, not 2",
        "  not UTF-8: 1",
        f"    {path}:6: not UTF-8: byte 0xE9 at offset 30 of the text",
    ]


def test_other_faults_are_counted_the_same_way() -> None:
    faults = Faults()
    assert str(faults) == "" and not faults.counts
    faults.add("empty text", "a.csv:7", "the text is empty")
    assert str(faults) == "1 row is left out:\n  empty text: 1\n    a.csv:7: the text is empty"
