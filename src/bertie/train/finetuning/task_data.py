"""The data of a fine-tuning run: turns labelled rows into the micro-batches of any step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bertie.batch import Batch
from bertie.data.batching import Rows as RowCount
from bertie.data.data_schedule import Cursor
from bertie.data.epoch_plan import EpochPlan
from bertie.errors import InputError
from bertie.tasks.examples import Examples
from bertie.tasks.task import Example, Values
from bertie.train.finetuning.task_evaluation import TaskEvaluation
from bertie.train.instances import split_rows


class RowChange(Protocol):
    """`change(values, epoch, number)` gives the values of a row in an epoch, and counts what it does."""

    num_cut: int  # rows that became too long by it

    def __call__(self, values: Values, epoch: int, number: int) -> Values: ...

    def take_counts(self) -> dict[str, int]:
        """Since the last call; the names are always the same."""

    def describe(self, counts: Mapping[str, int], max_length: int) -> str:
        """Counts that were added up, in one sentence."""


class RowSchedule:
    """Steps of so many rows, epoch after epoch, each in an order of its own."""

    def __init__(self, examples: Examples, batch_rows: int, seed: int):
        self.plan = EpochPlan(examples, RowCount(rows=batch_rows), seed)  # type: ignore[arg-type]

    def enter(self, place: Cursor | None, progress: float) -> Cursor:
        return place or Cursor(0, 0, 0)

    def after(self, place: Cursor) -> Cursor:
        return place._replace(position=place.position + 1)


@dataclass(frozen=True)
class TaskData:
    """The `RunSource` of one task."""

    data_schedule: RowSchedule
    examples: Examples
    evaluation: TaskEvaluation | None
    micro_tokens: int
    card: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    rank: int = 0
    num_ranks: int = 1
    change: RowChange | None = None  # of the training rows
    rows_continue: bool = False

    @property
    def start(self) -> Cursor:
        return self.data_schedule.enter(None, 0.0)

    def instances(self, place: Cursor) -> list[Batch]:
        """If no row of a step can be used, the rows of the next step take their place."""
        for position in range(place.position, place.position + self.examples.num_samples + 1):
            keys = self.data_schedule.plan.batch(position)[self.rank :: self.num_ranks]
            if self.change is None:
                read = [self.examples.example(number) for _, number in keys]
            else:
                read = [self._changed(self.change, epoch, number) for epoch, number in keys]
            samples = [sample for example in read if example is not None for sample in example.samples]
            if samples:
                return split_rows(samples, self.micro_tokens)
        raise InputError("no row can be used", where=self.examples.data.rows.name)

    def take_counts(self) -> dict[str, int]:
        return {} if self.change is None else self.change.take_counts()

    def describe_counts(self, counts: Mapping[str, int]) -> list[str]:
        return [] if self.change is None else [self.change.describe(counts, self.examples.max_length)]

    def _changed(self, change: RowChange, epoch: int, number: int) -> Example | None:
        found = self.examples.changed(number, lambda values: change(values, epoch, number))
        if found is None:
            return None
        change.num_cut += found[1].num_cut > 0 and not found[0].num_cut
        return found[1]
