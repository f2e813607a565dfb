"""Rows of labelled data enter, the micro-batches of any step leave, and examples to be measured on.

A row is read when it is asked for: nothing is loaded whole. A row that cannot be used is counted and passed over, or ends
the run, as the user chose.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from bertie.batch import Batch, Sample
from bertie.data.batching import Rows as RowCount
from bertie.data.course import Place
from bertie.data.plan import EpochPlan
from bertie.data.rows import Faults, Rows
from bertie.errors import InputError
from bertie.tasks.task import Example, Task, Values
from bertie.text.tokenizer import Tokenizer
from bertie.train.instances import split_rows

Policy = Literal["refuse", "skip"]
REMEMBERED = 200_000  # examples that are kept once they are read


class Examples:
    """Numbered examples of one task. `columns` says which column plays which role."""

    shuffled = True
    longest = 0  # steps are counted in rows, so that lengths need not be known

    def __init__(
        self, task: Task, rows: Rows, columns: Mapping[str, str], tokenizer: Tokenizer, length: int, policy: Policy
    ):
        self.task, self.rows, self.columns = task, rows, columns
        self.tokenizer, self.length, self.policy = tokenizer, length, policy
        self.faults = Faults()
        self.num_cut: dict[int, int] = {}  # tokens, by row
        self.example = lru_cache(REMEMBERED)(self._example)

    @property
    def num_samples(self) -> int:
        return self.rows.num_rows

    def values(self, number: int) -> Values:
        """By role; may raise InputError."""
        row = self.rows.row(number)
        return {role: row.values[column] for role, column in self.columns.items() if row.values.get(column) is not None}

    def _example(self, number: int) -> Example | None:
        """None for a row that cannot be used."""
        where = ""
        try:
            row = self.rows.row(number)
            where = row.where
            values = {role: row.values[name] for role, name in self.columns.items() if row.values.get(name) is not None}
            example = self.task.read(values, self.tokenizer, self.length)
        except InputError as error:
            told = error if error.where else InputError(error.what, where=where, hint=error.hint)
            if self.policy == "refuse":
                raise told from None
            self.faults.add(getattr(error, "kind", error.what), str(told.where), told.what)
            return None
        if example.num_cut:
            self.num_cut[number] = example.num_cut
        return example

    def all(self) -> list[Example]:
        """Those that can be used, in their order."""
        read = (self.example(number) for number in range(self.rows.num_rows))
        return [example for example in read if example is not None]


class RowCourse:
    """Steps of so many rows, epoch after epoch, each in an order of its own."""

    def __init__(self, examples: Examples, batch_rows: int, seed: int):
        self.plan = EpochPlan(examples, RowCount(rows=batch_rows), seed)  # type: ignore[arg-type]

    def enter(self, place: Place | None, progress: float) -> Place:
        return place or Place(0, 0, 0)

    def after(self, place: Place) -> Place:
        return place._replace(position=place.position + 1)
