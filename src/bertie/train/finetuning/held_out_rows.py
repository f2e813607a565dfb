"""Splits held-out rows off the training rows: the same rows for the same seed.

Only numbers and hashes of the rows are kept, 16 bytes a row at most.

Axes: N rows, G groups.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from bertie.data.duplicates import exact_hash
from bertie.data.rows import ChosenRows
from bertie.data.samples.sample_protocols import generator
from bertie.errors import InputError, SpecError
from bertie.tasks.labelled import SAMPLE, Labelled
from bertie.tasks.task import Task
from bertie.text.one_line import listed

COLUMNS = 200  # of a list of columns in a message


def hold_out(
    task: Task, data: Labelled, share: float, seed: int, group: str | None = None
) -> tuple[Labelled, Labelled, str]:
    """The rows to train on, those to measure on, and a sentence about the split.

    Rows with the same value in the column `group` stay together. Without it, each label has its share of the held-out
    rows; among many rows, where chance does that, labels are not read.
    """
    rows, share_words = data.rows, f"{100 * share:.6g}%"
    if rows.num_rows < 2:
        raise InputError("one row cannot be split into training rows and `dev`", where=rows.name)
    if group is None:
        chosen, by = _spread(_labels(task, data), share, seed), ""
    else:
        groups = _groups(data, group)
        chosen, num_chosen = _whole_groups(groups, share, seed, f"{rows.name}: the column {group!r}")
        by = f", which are {num_chosen:,} of {len(np.unique(groups)):,} groups by {group!r}"
    name = f"{share_words} of {rows.name}" + (f" by {group}" if group else "")
    learned, measured = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    train, dev = ChosenRows(rows, learned), ChosenRows(rows, measured)  # type: ignore[arg-type]
    dev.name = name
    what = f"{len(measured):,} of {rows.num_rows:,} rows ({len(measured) / rows.num_rows:.1%}) are held out{by}"
    return replace(data, rows=train), replace(data, rows=dev), f"{rows.name}: {what}"


def _labels(task: Task, data: Labelled) -> np.ndarray:
    """[N] hashes; all 0 where there are too many rows to read first, or where labels are not single values."""
    hashes = np.zeros(data.rows.num_rows, np.uint64)
    if data.rows.num_rows > SAMPLE:
        return hashes
    for number in range(len(hashes)):
        try:
            values, _ = data.values(number)
        except InputError:  # reported when the row is used
            continue
        found = [values.get(role) for role in (*task.targets, *task.extra_roles)]
        if not all(isinstance(one, str | int | None) for one in found):
            return np.zeros_like(hashes)
        hashes[number] = exact_hash(json.dumps(found))
    return hashes


def _groups(data: Labelled, column: str) -> np.ndarray:
    """[N] hashes. Rows that cannot be read are one group."""
    if column not in data.rows.columns:
        hint = f"its columns are {listed(data.rows.columns, COLUMNS)}"
        raise SpecError(f"`group`: there is no column {column!r}", where=data.rows.name, hint=hint)
    hashes = np.zeros(data.rows.num_rows, np.uint64)
    for number in range(len(hashes)):
        try:
            value: Any = data.rows.row(number).values.get(column)
        except InputError:
            continue
        hashes[number] = exact_hash(value if isinstance(value, str) else json.dumps(value, default=str))
    return hashes


def _spread(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """[N] bool. Evenly over the rows, which are sorted by label and in random order within each."""
    count = len(labels)
    order = np.lexsort((generator(seed, 0, 0, "held-out rows").random(count), labels))
    wanted = min(max(1, round(share * count)), count - 1)
    chosen = np.zeros(count, bool)
    chosen[order[(np.arange(wanted) * 2 + 1) * count // (2 * wanted)]] = True
    return chosen


def _whole_groups(groups: np.ndarray, share: float, seed: int, where: str) -> tuple[np.ndarray, int]:
    """[N] bool, and how many groups are chosen: so many, in random order, that their rows come nearest to the share."""
    _, of_row, sizes = np.unique(groups, return_inverse=True, return_counts=True)  # [N], [G]
    if len(sizes) < 2:
        what = "has the same value in all rows, so no group can be held out"
        raise InputError(what, where=where, hint="name another column with `group`")
    # By hash, so that the order of rows in the file does not matter.
    order = generator(seed, 0, 0, "held-out rows").permutation(len(sizes))
    totals = np.cumsum(sizes[order])[:-1]
    num_chosen = int(np.abs(totals - share * len(groups)).argmin()) + 1
    return np.isin(of_row, order[:num_chosen]), num_chosen
