"""One line of a terminal: never wider than it may be, never silently shortened."""

import pytest
from rich.cells import cell_len

from bertie.text.one_line import listed, one_line, padded, shortened


def test_nothing_moves_the_cursor() -> None:
    assert one_line("a\n\tb\x1b[31m c\r\x00") == "a b [31m c"


@pytest.mark.parametrize(
    ("text", "expected"), [("short", "short"), ("longer than", "longer…"), ("语言模型的", "语言模…")]
)
def test_what_is_too_long_is_marked(text: str, expected: str) -> None:
    assert shortened(text, 7) == expected


@pytest.mark.parametrize("text", ["", "a", "语言", "语言模型模型", "abcdefghijk"])
def test_a_cell_has_its_width(text: str) -> None:
    assert cell_len(padded(text, 7)) == cell_len(padded(text, 7, right=True)) == 7
    assert padded("语", 4) == "语  " and padded("语", 4, right=True) == "  语"


def test_a_list_tells_what_it_leaves_out() -> None:
    assert listed([], 20) == ""
    assert listed(["one", "two", "three"], 20) == "one, two, three"
    assert listed(["one", "two", "three"], 14) == "one and 2 more"
    assert listed(["a very long label", "b"], 16) == "a ve… and 1 more"
    assert listed([str(number) for number in range(100_000)], 30) == "0, 1, 2, 3, 4 and 99,995 more"
