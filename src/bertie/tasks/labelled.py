"""Labelled rows: a user's files or tables, and which column plays which role of a task."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from bertie.data.rows import ColumnGuess, Rows, guess_columns, open_rows
from bertie.data.rows.file_bytes import is_surely_utf8
from bertie.data.rows.label_lines import LabelTextView
from bertie.data.rows.opening import fits_ending
from bertie.data.rows.rows import spread_numbers
from bertie.errors import InputError, SpecError
from bertie.reporting.events import OnEvent, ignore, message, warning
from bertie.reporting.quantities import list_few
from bertie.spec import Spec
from bertie.tasks.task import Task, Values
from bertie.text.reading.paths import kind_of_path

# Data sets of entailment (SNLI, MultiNLI) write this where annotators did not agree on a label.
UNDECIDED_COLUMN, UNDECIDED = "gold_label", "-"
SAMPLE = 100_000  # rows from which labels are collected; of more rows so many, spread evenly


@dataclass(frozen=True)
class Labelled:
    """Rows, and which column plays which role."""

    rows: Rows
    columns: Mapping[str, str]

    def values(self, number: int) -> tuple[Values, str]:
        """By role, and where they stand; roles without a value are left out."""
        row = self.rows.row(number)
        given: dict[str, Any] = {}
        for role, column in self.columns.items():
            value = row.values.get(column)
            if value is not None and not (column == UNDECIDED_COLUMN and value == UNDECIDED):
                given[role] = value
        return given, row.where

    def all(self, numbers: range | None = None) -> Iterator[Values]:
        """Those of the rows, or of these numbers, that can be read; errors in the others are reported when they are
        used."""
        for number in range(self.rows.num_rows) if numbers is None else numbers:
            try:
                values, _ = self.values(number)
            except InputError:
                continue
            yield values

    def sample(self) -> Iterator[Values]:
        return self.all(self.sample_numbers())

    def sample_numbers(self) -> range:
        """Rows that represent all of them."""
        return range(0, self.rows.num_rows, max(1, self.rows.num_rows // SAMPLE))

    def has_undecided(self) -> bool:
        """Whether a row of a sample says that its annotators did not agree."""
        rows = (self.rows.row(number) for number in spread_numbers(self.rows.num_rows, 1000))
        with suppress(InputError):
            return any(row.values.get(UNDECIDED_COLUMN) == UNDECIDED for row in rows)
        return False


class Reading(Spec):
    """What a user said about files of rows. A model folder keeps it for the files that come later."""

    column: dict[str, str] = Field(default={}, description="by role")
    format: str | None = None
    header: bool | None = None
    encoding: str | None = None

    def completed(self, other: "Reading", paths: Sequence[Path], on_event: OnEvent) -> "Reading":
        """With what another reading says where this one says nothing, if it can be true of these files. Columns are
        completed later: the files must be open."""
        format, encoding = other.format, other.encoding
        if not self.format and format and (odd := next((one for one in paths if not fits_ending(one, format)), None)):
            on_event(message(f"{odd}: read by its ending, not as {format} as in training"))
            format = None
        if not self.encoding and encoding and any(kind_of_path(one) == "pipe" or str(one) == "-" for one in paths):
            on_event(
                warning(f"what is piped is read as UTF-8, not as {encoding} as in training; `encoding` changes that")
            )
            encoding = None
        if not self.encoding and encoding and (odd := next(filter(is_surely_utf8, paths), None)):
            on_event(message(f"{odd}: read as UTF-8, not as {encoding} as in training"))
            encoding = None
        header = other.header if self.header is None else self.header
        kept = {"format": not self.format and format, "encoding": not self.encoding and encoding}
        if said := [f"`{name}={value}`" for name, value in kept.items() if value]:
            on_event(message(f"{' and '.join(said)}, as in training"))
        return self.replace(format=self.format or format, header=header, encoding=self.encoding or encoding)


def open_labelled(
    task: Task,
    data: Rows | Sequence[str | Path],
    columns: Mapping[str, str] | None = None,
    *,
    format: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    targets: bool = True,
    trained: Reading | None = None,
    on_event: OnEvent = ignore,
) -> Labelled:
    """Opens files, or takes rows that are open, and finds the column of each role; what was guessed is reported.

    `columns` are those that the user named, by role. `format`, `header` and `encoding` describe the files where their
    names and contents do not. `trained` is what was said in training, and holds unless something else is said now.
    Without `targets` rows need none: they only want an answer, and a blank line of plain text is a row, too.
    """
    given = Reading(column=dict(columns or {}), format=format, header=header, encoding=encoding)
    rows = data if isinstance(data, Rows) else _open(task, list(map(Path, data)), given, trained, targets, on_event)
    kept = _kept_columns(task, rows, given.column, trained.column, targets, on_event) if trained else {}
    rows, named = task.prepare_rows(rows, {**kept, **given.column})
    for notice in rows.notices:
        on_event(message(notice))
    if unknown := next((role for role in named if role not in task.roles), None):
        raise SpecError(f"this task has no role {unknown!r}", hint=f"its roles are {', '.join(task.roles)}")
    if not rows.num_rows:
        raise InputError("there are no rows", where=rows.name)
    for role, column in named.items():
        others = [one for one in named if named[one] == column and one != role]
        if role in task.targets and others:
            raise SpecError(f"{others[0]} and {role} cannot both be the column {column!r}", where=rows.name)
    guess = _guess(task, rows, named, targets)
    reasons = [
        reason.replace("as named", "as in training") if role in kept else reason
        for role, reason in zip(guess.columns, guess.reasons, strict=True)
    ]
    on_event(message(f"{rows.name}: {'; '.join(reasons)}"))
    for role in (role for role in task.optional if role not in guess.columns and not task.reads_role(role)):
        for column in (one for one in rows.columns if one.lower() in task.roles[role]):
            if column not in guess.columns.values():
                on_event(message(f"{rows.name}: the column {column!r} is not read: the model was trained without it"))
    extra = {role: role for role in task.extra_roles} if targets else {}
    if missing := next((column for column in extra if column not in rows.columns), None):
        hint = f"its columns are {list_few(rows.columns)}"
        raise SpecError(f"there is no column {missing!r}", where=rows.name, hint=hint)
    labelled = Labelled(rows, {**guess.columns, **extra})
    if targets and UNDECIDED_COLUMN in guess.columns.values() and labelled.has_undecided():
        on_event(message(f"{rows.name}: rows whose {UNDECIDED_COLUMN} is {UNDECIDED!r} have no label"))
    return labelled


def _open(
    task: Task, paths: Sequence[Path], given: Reading, trained: Reading | None, targets: bool, on_event: OnEvent
) -> Rows:
    reading = given.completed(trained, paths, on_event) if trained else given
    # Rows that want an answer may be bare texts, whose first words are no labels.
    may_be_bare = not targets and not given.format and reading.format == "label-text"
    format = "lines" if may_be_bare else reading.format or task.default_format(paths)
    lines = open_rows(paths, format, header=reading.header, encoding=reading.encoding, every_line=not targets)
    if not may_be_bare:
        return lines
    known = getattr(task, "labels", ())
    words = [values["text"].split(maxsplit=1)[:1] for values in Labelled(lines, {"text": "text"}).sample()]
    if 2 * sum(word[0] in known for word in words if word) > len(words):
        return LabelTextView(lines)
    on_event(message(f"{lines.name}: its lines do not start with labels: they are read as texts"))
    return lines


def _kept_columns(
    task: Task,
    rows: Rows,
    given: Mapping[str, str],
    trained: Mapping[str, str],
    targets: bool,
    on_event: OnEvent,
) -> dict[str, str]:
    """The columns that were named in training, if the rows have them."""
    kept = {}
    if not targets:  # an answer needs no label
        trained = {role: column for role, column in trained.items() if role not in task.targets}
    for role, column in trained.items():
        if role in given or role not in task.roles or column in given.values():
            continue
        if column in rows.columns or all(part.strip() in rows.columns for part in column.split(",")):
            kept[role] = column
        else:
            what = f"there is no column {column!r}, which was the {role} in training"
            on_event(message(f"{rows.name}: {what}: another one is chosen"))
    return kept


def _guess(task: Task, rows: Rows, named: Mapping[str, str], targets: bool) -> ColumnGuess:
    roles = {role: names for role, names in task.roles_in(rows).items() if targets or role not in task.targets}
    roles |= {role: task.roles[role] for role in named}
    free = [column.lower() for column in rows.columns if column not in named.values()]
    wanted = dict(roles)
    for role, names in roles.items():
        may_be_missing = role in task.optional and role not in named
        if may_be_missing and not (task.reads_role(role) and any(name.lower() in free for name in names)):
            del wanted[role]
    try:
        return guess_columns(rows, wanted, named)
    except InputError:
        for others in task.found_together:
            more = {role: names for role, names in roles.items() if role in wanted or role in others}
            # What is left over may be what rows are about, unless they only want an answer.
            if len(more) > len(wanted) and (not targets or len(others) > 1 or len(more) == len(rows.columns)):
                with suppress(InputError):
                    return guess_columns(rows, more, named)
        raise


def report_unmeasured(task: Task, rows: Labelled, on_event: OnEvent) -> None:
    """Columns of held-out rows that are ignored."""
    for role, reason in task.unmeasured(rows.columns).items():
        on_event(message(f"{rows.rows.name}: the column {rows.columns[role]!r} is ignored: {reason}"))
