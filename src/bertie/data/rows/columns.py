"""Finds the column of each role (text, label, ...) by the names that people give it, with the reason in one sentence;
or raises an error that shows the columns and how to choose one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from bertie.data.rows.header import is_number, shorten
from bertie.data.rows.rows import RowError, Rows, spread_numbers
from bertie.errors import InputError
from bertie.reporting.quantities import list_few

HOW_TO_NAME = "choose it with `column={role}=NAME`"
SHOWN = 10  # columns in a sentence
CLEARLY_LONGER = 1.5
LONGEST_LABEL, MOST_LABELS = 50, 200  # characters; different ones in a sample
LABEL_REPEATS = 2  # rows for each different label, at least


class ColumnGuess(NamedTuple):
    columns: dict[str, str]  # role -> column
    reasons: list[str]  # a sentence for each role


@dataclass(frozen=True)
class Column:
    """A column with the values that the sample has of it; None where a row has none."""

    name: str
    values: list[Any]

    @property
    def present(self) -> list[Any]:
        return [value for value in self.values if value is not None]

    @property
    def mean_length(self) -> float:
        return sum(map(len, self.present)) / max(1, len(self.values))

    @property
    def num_different(self) -> int:
        return len(set(map(str, self.present)))

    @property
    def is_numeric(self) -> bool:
        return bool(self.present) and all(map(_is_number, self.present))

    @property
    def is_text(self) -> bool:
        return bool(self.present) and not self.is_numeric and all(isinstance(value, str) for value in self.present)

    @property
    def is_label(self) -> bool:
        values, different = self.present, self.num_different
        if not all(isinstance(value, str | int) and len(str(value)) <= LONGEST_LABEL for value in values):
            return False
        return 2 <= different <= max(2, min(MOST_LABELS, len(values) // LABEL_REPEATS))

    @property
    def example(self) -> str:
        return shorten(repr(next(iter(self.present), None)))


def guess_columns(
    rows: Rows, roles: Mapping[str, Sequence[str]], named: Mapping[str, str] | None = None, sample: int = 1000
) -> ColumnGuess:
    """`named` is what the user said, role by role. The other roles go to a column of one of their names, the first
    names first; what is left goes by content: text is long, a label is one of few values, a number is a number."""
    for role, given in (named or {}).items():
        if role not in roles:
            raise InputError(f"there is no column for {role!r} here", hint=f"the roles are {', '.join(roles)}")
        if given not in rows.columns:
            hint = f"its columns are: {list_few(rows.columns)}"
            raise InputError(f"there is no column {given!r}", where=rows.name, hint=hint)
    found: Found = {role: (column, "as named") for role, column in (named or {}).items()}
    for role in roles:
        taken = [column for column, _ in found.values()]
        column = _by_name([name for name in rows.columns if name not in taken], roles[role])
        if role not in found and column is not None:
            found[role] = column, "by its name"
    if len(found) < len(roles):
        columns = _sampled(rows, sample)
        found |= _by_content(rows, columns, list(roles), found)
    reasons = [f"{role} is the column {found[role][0]!r}, {found[role][1]}" for role in roles]
    return ColumnGuess({role: found[role][0] for role in roles}, reasons)


Found = dict[str, tuple[str, str]]  # role -> column, and why
Choice = list[tuple[Column, str]]


def choose_texts(columns: Sequence[Column], count: int) -> Choice:
    """The longest ones in the order of the file; none where the next one is nearly as long."""
    longest = sorted((column for column in columns if column.is_text), key=lambda column: -column.mean_length)
    if len(longest) > count and longest[count - 1].mean_length < CLEARLY_LONGER * longest[count].mean_length:
        return []
    chosen = [column for column in columns if column in longest[:count]]
    return [(column, f"by its long texts ({column.mean_length:.0f} characters on average)") for column in chosen]


def choose_numbers(columns: Sequence[Column], count: int) -> Choice:
    """Whole numbers are often identifiers, so numbers with a fraction go first."""
    numeric = [column for column in columns if column.is_numeric]
    with_fraction = [column for column in numeric if any(float(value) % 1 for value in column.present)]
    chosen = numeric if len(numeric) == count else with_fraction
    return [(column, f"by its numbers, such as {column.example}") for column in chosen]


def choose_labels(columns: Sequence[Column], count: int) -> Choice:
    chosen = [column for column in columns if column.is_label]
    return [(column, f"by its {column.num_different} different values, such as {column.example}") for column in chosen]


# In this order: a text with few different values would pass for a label.
CHOICES: dict[str, Callable[[Sequence[Column], int], Choice]] = {
    "text": choose_texts,
    "number": choose_numbers,
    "label": choose_labels,
}
# What a role's column holds. A role that is not here goes by name alone.
CONTENTS = {
    "text": "text",
    "other": "text",
    "number": "number",
    "score": "number",
    "label": "label",
}


def _taken(found: Found) -> set[str]:
    return {column for column, _ in found.values()}


def _by_content(rows: Rows, columns: Sequence[Column], needed: Sequence[str], known: Found) -> Found:
    """The columns of those roles that are not known yet."""
    roles, taken = [role for role in needed if role not in known], _taken(known)
    found: Found = {}
    for content, choose in CHOICES.items():
        wanted = [role for role in roles if CONTENTS.get(role) == content]
        free = [column for column in columns if column.name not in taken | _taken(found)]
        chosen = choose(free, len(wanted)) if wanted else []
        if len(chosen) != len(wanted):
            _refuse(rows, wanted[0], needed, columns)
        found |= {role: (column.name, why) for role, (column, why) in zip(wanted, chosen, strict=True)}
    for role in roles:
        if role not in found:
            _refuse(rows, role, needed, columns)
    return found


def _by_name(columns: Sequence[str], names: Sequence[str]) -> str | None:
    lowered = {column.lower(): column for column in reversed(columns)}
    for name in names:
        if name in columns:
            return name
        if name.lower() in lowered:
            return lowered[name.lower()]
    return None


def _sampled(rows: Rows, sample: int) -> list[Column]:
    found = []
    for number in spread_numbers(rows.num_rows, sample):
        try:
            found.append(rows.row(number).values)
        except RowError:
            continue  # it is reported when the row itself is read
    return [Column(name, [values.get(name) for values in found]) for name in rows.columns]


def _refuse(rows: Rows, role: str, roles: Sequence[str], columns: Sequence[Column]) -> NoReturn:
    """`roles` are all that the task needs."""
    if not rows.num_rows:
        raise InputError("there are no rows", where=rows.name)
    if len(columns) < len(roles):
        count = "one column" if len(columns) == 1 else f"{len(columns)} columns"
        what = f"it has {count}, {list_few(rows.columns)}, and {' and '.join(roles)} are needed"
        hint = "give a file with a column for each, or its `format`, if it is read wrongly"
        raise InputError(what, where=rows.name, hint=hint)
    shown = ", ".join(f"{shorten(column.name)!r} (such as {column.example})" for column in columns[:SHOWN])
    more = f" and {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    hint = f"{HOW_TO_NAME.format(role=role)}; the columns are: {shown}{more}"
    raise InputError(f"it is not clear which column is the {role}", where=rows.name, hint=hint)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or (isinstance(value, str) and is_number(value))
