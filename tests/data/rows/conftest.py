"""Files of rows, written on the spot."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.rows.rows import Rows

Writer = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """`write("a.csv", "text,label\\n")`: the path of a new file with this content."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def values_of() -> Callable[[Rows], list[list[object]]]:
    """The values of all rows, without their columns' names."""

    def read(rows: Rows) -> list[list[object]]:
        return [list(row.values.values()) for row in rows]

    return read
