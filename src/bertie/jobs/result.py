"""What a job returns: an object that reads well in a terminal and in a notebook, and turns into JSON."""

import io
import tempfile
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from bertie.reporting.page import table

WIDTH = 100  # columns of a result as text, where no terminal says otherwise

Temporary = tempfile.TemporaryDirectory[str]


def place_for(out: Path | None, name: str) -> tuple[Path, Temporary | None]:
    """Where a result is written: `out`, or a place in a temporary folder, which lives as long as somebody holds it."""
    if out is not None:
        return out, None
    folder = tempfile.TemporaryDirectory(prefix="bertie-")
    return Path(folder.name) / name, folder


class Result:
    """A subclass says what to print (`parts`) and what its JSON is (`to_json`)."""

    def parts(self) -> Iterable[RenderableType]:
        """Lines of text and rich tables, in order."""
        raise NotImplementedError

    def to_json(self) -> Any:
        """Plain values: what `--json` prints, and what a server would send."""
        raise NotImplementedError

    def print(self, console: Console) -> None:
        for part in self.parts():
            if isinstance(part, str | Text):
                console.print(part, markup=False, highlight=False, soft_wrap=True)
            else:
                console.print(part)

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=WIDTH, emoji=False, color_system=None)
        self.print(console)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(_html(part) for part in self.parts())


def _html(part: RenderableType) -> str:
    """A rich table as a table of HTML, anything else as its lines."""
    if not isinstance(part, Table):
        return f"<pre>{escape(str(part))}</pre>" if str(part).strip() else ""
    title = f"<p><b>{escape(str(part.title))}</b></p>" if part.title else ""
    columns = [[_plain(cell) for cell in column.cells] for column in part.columns]
    return title + str(table([_plain(column.header) for column in part.columns], list(zip(*columns, strict=True))))


def _plain(cell: RenderableType) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)
