from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.rows import ChosenRows, open_rows
from bertie.data.rows.rows import spread_numbers

Writer = Callable[[str, str | bytes], Path]


def test_rows_are_a_sequence(write: Writer) -> None:
    rows = open_rows([write("a.jsonl", "".join(f'{{"n": {number}}}\n' for number in range(10)))])
    assert len(rows) == 10 and rows.row(9) == rows[-1] == rows.row(-1)
    part = rows[2:8:2]
    assert [row.values["n"] for row in part] == [2, 4, 6] and part.columns == ("n",)
    assert [row.values["n"] for row in part[::-1]] == [6, 4, 2]
    assert part[1].where.endswith("a.jsonl:5")
    assert [row.values["n"] for row in ChosenRows(rows, [7, 7, 0])] == [7, 7, 0]
    for number in (10, -11):
        with pytest.raises(IndexError):
            rows.row(number)


@pytest.mark.parametrize(("num_rows", "sample"), [(0, 5), (3, 5), (5, 5), (1001, 100), (10**9, 7)])
def test_a_sample_is_spread_over_all(num_rows: int, sample: int) -> None:
    numbers = spread_numbers(num_rows, sample)
    assert len(set(numbers)) == len(numbers) == min(num_rows, sample)
    assert all(0 <= number < num_rows for number in numbers)
    assert not numbers or (numbers[0] == 0 and numbers[-1] >= num_rows - num_rows // sample - 1)
