"""Examples: labelled rows, read by a task. A row is read when it is needed: nothing is loaded as a whole.

A row that cannot be used is counted and skipped, or ends the work, as the user chose.
"""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from bertie.data.rows import Faults, RowError
from bertie.errors import InputError
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Example, Task, Values
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.tokens import UnknownCount

Policy = Literal["refuse", "skip"]
CACHED = 100_000  # examples
FIX_ROW = "fix the row, or skip such rows with `skip_bad`"

PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d[\d,.]*")

OnRow = Callable[[int, Example | None], None]  # number of the row; None where it cannot be used
Complete = Callable[[int, Example], Example]


class Examples:
    """Numbered examples of one task. `on_row` gets every row when it is read for the first time."""

    # What an epoch's plan asks of samples; steps are counted in rows, so lengths need not be known.
    shuffled, longest = True, 0

    def __init__(
        self,
        task: Task,
        data: Labelled,
        tokenizer: Tokenizer,
        max_length: int,
        policy: Policy = "refuse",
        on_row: OnRow | None = None,
        *,
        labelled: bool = True,
        cached: int = CACHED,
    ):
        """If `labelled`, a row without gold cannot be used. So many examples are kept once they are read."""
        self.task, self.data, self.tokenizer, self.max_length, self.policy = task, data, tokenizer, max_length, policy
        self.labelled, self.num_samples = labelled, data.rows.num_rows
        self.faults = Faults()
        self.num_cut: dict[int, int] = {}  # tokens, by row
        self.unknown = UnknownCount()  # of the rows that were read
        self.complete: Complete | None = None
        self._on_row, self._known = on_row, set[int]()
        self._cached = lru_cache(cached)(self._read)

    def example(self, number: int) -> Example | None:
        """None for a row that cannot be used."""
        example = self._cached(number)
        return example if example is None or self.complete is None else self.complete(number, example)

    def completed_by(self, complete: Complete) -> "Examples":
        """The same examples with what is stored elsewhere, such as features. What was read is shared."""
        completed = copy(self)
        completed.complete = complete
        return completed

    def all(self) -> list[Example]:
        """Those that can be used, in their order."""
        return [example for example in map(self.example, range(self.num_samples)) if example is not None]

    def changed(self, number: int, change: Callable[[Values], Values]) -> tuple[Example, Example] | None:
        """The row as it is, and as it is after its values are changed, which is not kept."""
        example = self.example(number)
        if example is None:
            return None
        values = change(example.values)
        return example, example if values is example.values else self._read_values(values, example.where)

    def _read(self, number: int) -> Example | None:
        try:
            example: Example | None = self._read_values(*self.data.values(number))
        except InputError as error:
            if self.policy == "refuse":
                raise
            example = None
            if number not in self._known:
                self.faults.add(kind_of(error), str(error.where), error.what)
        if number not in self._known:
            self._known.add(number)
            for sample in example.samples if example is not None else ():
                self.unknown = self.unknown.plus(self.tokenizer.special.count_unknown(np.asarray(sample["tokens"])))
            if example is not None and example.num_cut:
                self.num_cut[number] = example.num_cut
            if self._on_row is not None:
                self._on_row(number, example)
        return example

    def _read_values(self, values: Values, where: str) -> Example:
        try:
            example = self.task.read(values, self.tokenizer, self.max_length)
            if self.labelled and example.gold is None:
                raise InputError(self.task.missing(values))
            return replace(example, values=values, where=where)
        except InputError as error:
            if isinstance(error, RowError):
                raise
            raise RowError(error.what, where=where, kind=kind_of(error), hint=error.hint or FIX_ROW) from None


def kind_of(error: InputError) -> str:
    """The same phrase for the same mistake: quoted parts and numbers differ from row to row."""
    return error.kind if isinstance(error, RowError) else PARTICULAR.sub("...", error.what)
