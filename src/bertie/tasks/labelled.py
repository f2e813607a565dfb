"""Labelled rows: a user's files or tables, and which column plays which role of a task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertie.data.rows import Rows, guess_columns, open_rows
from bertie.errors import InputError, SpecError
from bertie.reporting.events import OnEvent, ignore, message
from bertie.tasks.task import Task, Values

SAMPLE = 100_000  # rows from which labels are collected; of more rows so many, spread evenly


@dataclass(frozen=True)
class Labelled:
    """Rows, and which column plays which role."""

    rows: Rows
    columns: Mapping[str, str]

    def values(self, number: int) -> tuple[Values, str]:
        """By role, and where they stand; roles without a value are left out."""
        row = self.rows.row(number)
        given = {role: row.values.get(column) for role, column in self.columns.items()}
        return {role: value for role, value in given.items() if value is not None}, row.where

    def all(self) -> Iterator[Values]:
        """Those of the rows that can be read; errors in the others are reported when they are used."""
        return self._readable(range(self.rows.num_rows))

    def sample(self) -> Iterator[Values]:
        return self._readable(self.sample_numbers())

    def sample_numbers(self) -> range:
        """Rows that represent all of them."""
        return range(0, self.rows.num_rows, max(1, self.rows.num_rows // SAMPLE))

    def _readable(self, numbers: range) -> Iterator[Values]:
        for number in numbers:
            try:
                values, _ = self.values(number)
            except InputError:
                continue
            yield values


def open_labelled(
    task: Task,
    data: Rows | Sequence[str | Path],
    columns: Mapping[str, str] | None = None,
    *,
    format: str | None = None,
    header: bool | None = None,
    targets: bool = True,
    on_event: OnEvent = ignore,
) -> Labelled:
    """Opens files, or takes rows that are open, and finds the column of each role; what was guessed is reported.

    `columns` are those that the user named, by role. `format` and `header` describe the files where their names and
    contents do not. Without `targets` rows need none: they only want an answer.
    """
    if not isinstance(data, Rows):
        format = format or task.default_format(data)
        data = open_rows(data, format, header=header, every_line=not targets)  # an answer for each line
    rows = data
    rows, named = task.prepare_rows(rows, columns or {})
    for notice in rows.notices:
        on_event(message(notice))
    if unknown := next((role for role in named if role not in task.roles), None):
        raise SpecError(f"this task has no role {unknown!r}", hint=f"its roles are {', '.join(task.roles)}")
    free = {column.lower() for column in rows.columns if column not in named.values()}

    def is_wanted(role: str) -> bool:
        if role in named:
            return True
        if role in task.targets and not targets:
            return False
        if role in task.optional:
            return task.reads_role(role) and any(name.lower() in free for name in task.roles[role])
        return True

    guess = guess_columns(rows, {role: names for role, names in task.roles.items() if is_wanted(role)}, named)
    for reason in guess.reasons:
        on_event(message(reason))
    extra = {role: role for role in task.extra_roles} if targets else {}
    if missing := next((column for column in extra if column not in rows.columns), None):
        hint = f"its columns are {', '.join(rows.columns)}"
        raise SpecError(f"there is no column {missing!r}", where=rows.name, hint=hint)
    return Labelled(rows, {**guess.columns, **extra})


def column_names(words: Sequence[str]) -> dict[str, str]:
    """ROLE=NAME, once for each role."""
    named = {}
    for word in words:
        role, sign, column = word.partition("=")
        if not sign or not role or not column:
            raise SpecError(f"`column` {word!r} is not of the form ROLE=NAME", hint="like text=review")
        named[role] = column
    return named


def report_unmeasured(task: Task, rows: Labelled, on_event: OnEvent) -> None:
    """Columns of held-out rows that are ignored."""
    for role, reason in task.unmeasured(rows.columns).items():
        on_event(message(f"{rows.rows.name}: the column {rows.columns[role]!r} is ignored: {reason}"))
