"""Misspells some words of rows. What happens to a row depends only on the seed, the epoch and the row's number."""

from collections.abc import Mapping
from dataclasses import dataclass

from bertie.data.samples.sample_protocols import generator
from bertie.errors import CapabilityError
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Task, Values
from bertie.text.noise import Noise


class RowNoise:
    """Misspells a share of the rows, drawn again in each epoch; the others stay as they are."""

    def __init__(self, noise: Noise, task: Task, seed: int, share: float = 1.0):
        if not task.texts:
            what = f"rows of the task {task.kind} cannot be misspelt: the task predicts places in their texts"
            raise CapabilityError(what, hint="leave out `noise`")
        self.noise, self.task, self.seed, self.share = noise, task, seed, share
        self.num_words = self.num_changed = 0  # of all rows misspelt so far
        self.num_rows = self.num_cut = 0  # those rows; and those of them that became too long
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

    def describe(self, counts: Mapping[str, int], max_length: int) -> str:
        """Sums of counts, in one sentence."""
        words, changed, rows, cut = (counts.get(name, 0) for name in ("words", "changed", "rows", "cut"))
        text = f"noise misspelt {changed:,} of the {words:,} words of {rows:,} rows, counted in every epoch"
        return f"{text}; {cut:,} of the rows became longer than {max_length:,} tokens and were cut" if cut else text


@dataclass(frozen=True)
class MisspeltRows(Labelled):
    """Rows to measure on: every row is misspelt, always in the same way."""

    noise: RowNoise

    def values(self, number: int) -> tuple[Values, str]:
        values, where = super().values(number)
        return self.noise(values, 0, number), where
