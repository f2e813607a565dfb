"""Rows as people would have typed them: a row's values enter, the values with some words misspelt leave.

What is done to a row depends on the seed, the epoch and the row's number alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bertie.data.samples.source import generator
from bertie.errors import CapabilityError
from bertie.tasks.task import Task, Values
from bertie.text.noise import Noise
from bertie.train.task_data import Labelled


class RowNoise:
    """A share of the rows is misspelt in each epoch, by chance and each time anew; the others stay as they are."""

    def __init__(self, noise: Noise, task: Task, seed: int, share: float = 1.0):
        if not task.texts:
            what = f"rows of the task {task.kind} cannot be misspelt: places in their texts are asked for"
            raise CapabilityError(what, hint="leave out --noise")
        self.noise, self.task, self.seed, self.share = noise, task, seed, share
        self.num_words = self.num_changed = 0  # of all rows that were misspelt so far
        self.num_rows = self.num_cut = 0  # those rows; and those of them that were not too long before
        self._taken = dict[str, int]()

    def __call__(self, values: Values, epoch: int, number: int) -> Values:
        rng = generator(self.seed, epoch, number, "noise")
        if rng.random() >= self.share:
            return values

        def change(text: str) -> str:
            found = self.noise(text, rng)
            self.num_words += found.num_words
            self.num_changed += found.num_changed
            return found.text

        self.num_rows += 1
        return self.task.misspelt(values, change)

    def take_counts(self) -> dict[str, int]:
        """Since the last call."""
        now = {"words": self.num_words, "changed": self.num_changed, "rows": self.num_rows, "cut": self.num_cut}
        before, self._taken = self._taken, now
        return {name: count - before.get(name, 0) for name, count in now.items()}

    def told(self, counts: Mapping[str, int], length: int) -> str:
        """Sums of what was taken, in one sentence."""
        words, changed, rows, cut = (counts.get(name, 0) for name in ("words", "changed", "rows", "cut"))
        told = f"noise misspelt {changed:,} of the {words:,} words of {rows:,} rows, counted anew in each epoch"
        return f"{told}; {cut:,} of the rows became longer than {length:,} tokens by it and were cut" if cut else told


@dataclass(frozen=True)
class MisspeltRows(Labelled):
    """To be measured on: every row is misspelt, each time in the same way."""

    noise: RowNoise

    def values(self, number: int) -> tuple[Values, str]:
        values, where = super().values(number)
        return self.noise(values, 0, number), where
