"""Labelled data as people have it, read by number without loading it: files in, rows out."""

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
