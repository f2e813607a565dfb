"""Reads lines that start with their labels: "LABEL text", and "__label__X __label__Y text"."""

from typing import Any

from bertie.data.rows.records import LineRows
from bertie.data.rows.rows import Row, RowError, Rows

PREFIX = "__label__"


class LabelTextRows(LineRows):
    """The first word of a line is its label, the rest its text."""

    columns = ("label", "text")

    def _values(self, line: str, where: str) -> dict[str, Any]:
        return split_label(line, where)


class LabelTextView(Rows):
    """Rows of plain lines, read as `LabelTextRows`."""

    columns = ("label", "text")

    def __init__(self, rows: Rows):
        self.name, self.notices, self._rows = rows.name, rows.notices, rows
        self.num_rows = self._rows.num_rows

    def _read(self, number: int) -> Row:
        row = self._rows.row(number)
        return Row(split_label(row.values["text"], row.where), row.where)


def split_label(line: str, where: str) -> dict[str, Any]:
    label, *rest = line.split(maxsplit=1) or [""]
    if not rest and label:
        what, hint = f"the line has only one word, {label!r}", "write a label, a space and a text"
        raise RowError(what, where=where, kind="no text after the label", hint=hint)
    return {"label": label or None, "text": rest[0].rstrip() if rest else ""}


class PrefixedLabelRows(LineRows):
    """Words that start with __label__ are labels, wherever they are; the others are the text."""

    columns = ("label", "text")

    def _values(self, line: str, where: str) -> dict[str, Any]:
        words = line.split(" ")
        labels = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
        text = " ".join(word for word in words if not word.startswith(PREFIX)).strip()
        # Several labels in one text are separated by commas, so a label with a comma must be in a list.
        alone = len(labels) == 1 and "," not in labels[0]
        return {"label": (labels[0] if alone else labels) or None, "text": text}
