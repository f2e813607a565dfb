"""Rows of labelled data enter, the micro-batches of any step leave, and examples to be measured on.

A row is read when it is asked for: nothing is loaded whole. A row that cannot be used is counted and passed over, or
ends the run, as the user chose.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, Protocol

from bertie.batch import Batch
from bertie.data.batching import Rows as RowCount
from bertie.data.course import Place
from bertie.data.plan import EpochPlan
from bertie.data.rows import Faults, RowError, Rows
from bertie.errors import InputError
from bertie.tasks.task import Example, Task, Values
from bertie.text.tokenizer import Tokenizer
from bertie.train.instances import split_rows
from bertie.train.task_evaluation import TaskEvaluation

Policy = Literal["refuse", "skip"]
REMEMBERED = 100_000  # examples

PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d[\d,.]*")

Seen = Callable[[int, Example | None], None]  # number of the row; None where it cannot be used
Complete = Callable[[int, Example], Example]


class Change(Protocol):
    """`change(values, epoch, number)`: the values of a row as an epoch sees them. It is told which rows were cut for
    its sake, and counts what it does."""

    num_cut: int

    def __call__(self, values: Values, epoch: int, number: int) -> Values: ...

    def take_counts(self) -> dict[str, int]:
        """Since the last call; the names are always the same."""

    def told(self, counts: Mapping[str, int], length: int) -> str:
        """Counts that were added up, in one sentence."""


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
        """Those of the rows that can be read; the others are told when they are read for their own sake."""
        for number in range(self.rows.num_rows):
            try:
                values, _ = self.values(number)
            except InputError:
                continue
            yield values


class Examples:
    """Numbered examples of one task. `seen` is told of every row when it is read for the first time."""

    def __init__(
        self,
        task: Task,
        data: Labelled,
        tokenizer: Tokenizer,
        length: int,
        policy: Policy,
        seen: Seen | None = None,
        *,
        labelled: bool = True,
        remembered: int = REMEMBERED,
    ):
        """Where `labelled`, a row without gold cannot be used. So many are `remembered` once they are read."""
        self.labelled = labelled
        self.task, self.data, self.tokenizer, self.length, self.policy = task, data, tokenizer, length, policy
        self.faults = Faults()
        self.num_cut: dict[int, int] = {}  # tokens, by row
        self.example = lru_cache(remembered)(self._example)
        self._seen, self._known = seen, set[int]()

    # What an epoch's plan asks of samples; steps are counted in rows, so that lengths need not be known.
    shuffled, longest = True, 0

    @property
    def num_samples(self) -> int:
        return self.data.rows.num_rows

    def _example(self, number: int) -> Example | None:
        """None for a row that cannot be used."""
        try:
            example: Example | None = self._read(number)
        except InputError as error:
            if self.policy == "refuse":
                raise
            example = None
            if number not in self._known:
                self.faults.add(kind_of(error), str(error.where), error.what)
        if number not in self._known:
            self._known.add(number)
            if example is not None and example.num_cut:
                self.num_cut[number] = example.num_cut
            if self._seen is not None:
                self._seen(number, example)
        return example

    def _read(self, number: int) -> Example:
        return self._read_values(*self.data.values(number))

    def _read_values(self, values: Values, where: str) -> Example:
        try:
            example = self.task.read(values, self.tokenizer, self.length)
            if self.labelled and example.gold is None:
                raise InputError(self.task.missing(values))
            return replace(example, values=values, where=where)
        except InputError as error:
            if isinstance(error, RowError):
                raise
            hint = error.hint or "mend the row, or pass over such rows with --skip-bad"
            raise RowError(error.what, where=where, kind=kind_of(error), hint=hint) from None

    def completed_by(self, complete: Complete) -> None:
        """From now on every example is what this makes of it, such as one with stored features."""
        read = self.example

        def completed(number: int) -> Example | None:
            example = read(number)
            return None if example is None else complete(number, example)

        self.example = lru_cache(REMEMBERED)(completed)

    def changed(self, number: int, epoch: int, change: Change) -> Example | None:
        """The row as an epoch sees it; that is not kept."""
        example = self.example(number)
        if example is None:
            return None
        values = change(example.values, epoch, number)
        if values is example.values:
            return example
        found = self._read_values(values, example.where)
        change.num_cut += found.num_cut > 0 and not example.num_cut
        return found

    def all(self) -> list[Example]:
        """Those that can be used, in their order."""
        return [example for example in map(self.example, range(self.num_samples)) if example is not None]


def kind_of(error: InputError) -> str:
    """The same phrase for the same mistake: what is quoted in it, and numbers, differ from row to row."""
    return error.kind if isinstance(error, RowError) else PARTICULAR.sub("...", error.what)


class RowCourse:
    """Steps of so many rows, epoch after epoch, each in an order of its own."""

    def __init__(self, examples: Examples, batch_rows: int, seed: int):
        self.plan = EpochPlan(examples, RowCount(rows=batch_rows), seed)  # type: ignore[arg-type]

    def enter(self, place: Place | None, progress: float) -> Place:
        return place or Place(0, 0, 0)

    def after(self, place: Place) -> Place:
        return place._replace(position=place.position + 1)


@dataclass(frozen=True)
class TaskData:
    """What a run asks of its data."""

    course: RowCourse
    examples: Examples
    evaluation: TaskEvaluation | None
    micro_tokens: int
    card: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    rank: int = 0
    num_ranks: int = 1
    change: Change | None = None  # of the rows that are learned from

    @property
    def beginning(self) -> Place:
        return self.course.enter(None, 0.0)

    def instances(self, place: Place) -> list[Batch]:
        """Where no row of a step can be used, those of the next one stand in for them."""
        for position in range(place.position, place.position + self.examples.num_samples + 1):
            keys = self.course.plan.batch(position)[self.rank :: self.num_ranks]
            read = (self._seen(epoch, number) for epoch, number in keys)
            samples = [sample for example in read if example is not None for sample in example.samples]
            if samples:
                return split_rows(samples, self.micro_tokens)
        raise InputError("no row can be used", where=self.examples.data.rows.name)

    def take_counts(self) -> dict[str, int]:
        return {} if self.change is None else self.change.take_counts()

    def told(self, counts: Mapping[str, int]) -> list[str]:
        return [] if self.change is None else [self.change.told(counts, self.examples.length)]

    def _seen(self, epoch: int, number: int) -> Example | None:
        if self.change is None:
            return self.examples.example(number)
        return self.examples.changed(number, epoch, self.change)
