"""Turns labelled data, in files or in memory, into rows that are read by number."""

from bertie.data.rows.columns import ColumnGuess, guess_columns
from bertie.data.rows.faults import Faults, good_rows
from bertie.data.rows.opening import KINDS, open_rows
from bertie.data.rows.rows import ChosenRows, JoinedRows, Row, RowError, Rows

__all__ = [
    "KINDS",
    "ChosenRows",
    "ColumnGuess",
    "Faults",
    "JoinedRows",
    "Row",
    "RowError",
    "Rows",
    "good_rows",
    "guess_columns",
    "open_rows",
]
