"""What labelled rows are like: examples enter as they are read, counts for people and for data_card.json leave.

Before training a sample spread over the rows is read. The first epoch then reads all the others, and the card with
them: at every moment it says how many rows it speaks of. A row costs it 16 bytes.

Axes: N rows.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bertie.data.duplicates import exact_hash
from bertie.data.manifest import write_whole
from bertie.data.rows.rows import spread_numbers
from bertie.tasks.task import Example, Task, Values
from bertie.text.one_line import listed, shortened
from bertie.train.majority import Majority, majority_baseline

DATA_CARD = "data_card.json"
SAMPLE = 2000  # rows that are read before training
KEPT_GOLD = 20_000  # of the rows that are read first: enough to tell what is most frequent
COLUMNS = 100  # of a line in the terminal
LABEL_COLUMNS = 30
FAULTY = -1


class DataCard:
    """`train.seen` and `dev.seen` are to be called with every row that is read."""

    def __init__(self, task: Task, length: int, num_train: int, num_dev: int = 0):
        self.task, self.length = task, length
        self.train, self.dev = SeenRows(task, num_train), SeenRows(task, num_dev)

    @property
    def num_duplicates(self) -> int:
        """Rows of dev, of those read, whose texts are also in train, as far as it was read."""
        return int(np.isin(self.dev.known_texts, self.train.known_texts).sum())

    @property
    def majority(self) -> Majority | None:
        """Measured on dev, or on train where there is no dev."""
        measured = self.dev if self.dev.num_rows else self.train
        return majority_baseline(self.task, self.train.gold, measured.gold)

    def as_dict(self) -> dict[str, Any]:
        found = self.majority
        baseline = None if found is None else {"answer": found.answer, "metric": found.metric, "score": found.score}
        dev = None
        if self.dev.num_rows:
            dev = {**self.dev.as_dict(), "also_in_train": self.num_duplicates}
        return {"length": self.length, "train": self.train.as_dict(), "dev": dev, "majority": baseline}

    def write(self, folder: Path) -> None:
        write_whole(folder / DATA_CARD, (json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n").encode())

    def lines(self) -> list[str]:
        """For the terminal."""
        told = _part_lines("train", self.train, self.length)
        if self.dev.num_rows:
            told += _part_lines("dev", self.dev, self.length)
            told.append(self._duplicates_told())
        if found := self.majority:
            answer = shortened(found.answer, LABEL_COLUMNS * 2)
            told.append(f"always answering {answer}: {found.metric} {found.score:.4f}")
        return told

    def _duplicates_told(self) -> str:
        count, num_read = self.num_duplicates, self.dev.num_read
        rows, are = ("row", "is") if count == 1 else ("rows", "are")
        share = f" ({count / num_read:.1%})" if count else ""
        return f"{count:,} {rows} of dev{share} {are} also in train, of which {self.train.read_told}"


class SeenRows:
    """What is known of the rows of train, or of dev. A row that is read again is not counted again."""

    def __init__(self, task: Task, num_rows: int):
        self.task, self.num_rows = task, num_rows
        self.tokens = np.zeros(num_rows, np.int32)  # [N] as if nothing had been cut; 0 before the row is read
        self.num_cut = np.zeros(num_rows, np.int32)  # [N] tokens
        self.texts = np.zeros(num_rows, np.uint64)  # [N] hashes; 0 where there is no text
        self.labels: Counter[str] = Counter()
        self.num_gold, self.repeats = 0, False  # rows with gold; whether one has the same label twice
        self.gold: list[Any] = []

    def sample(self, read: Callable[[int], Example | None]) -> None:
        """Reads rows that are spread over all."""
        for number in spread_numbers(self.num_rows, SAMPLE):
            self.seen(number, read(number))

    def seen(self, number: int, example: Example | None) -> None:
        """None is a row that cannot be used."""
        if self.tokens[number]:
            return
        if example is None:
            self.tokens[number] = FAULTY
            return
        # Windows over a long text overlap: what they share is read, and counted, more than once.
        read = [len(sample["tokens"]) for sample in example.samples]  # type: ignore[arg-type]
        self.tokens[number] = sum(read) + example.num_cut
        self.num_cut[number] = example.num_cut
        self.texts[number] = text_hash(self.task, example.values)
        if example.gold is not None:
            labels = self.task.labels_of(example.gold)
            self.labels.update(labels)
            self.num_gold += 1
            self.repeats = self.repeats or len(set(labels)) < len(labels)
            if len(self.gold) < KEPT_GOLD:
                self.gold.append(example.gold)

    @property
    def num_read(self) -> int:
        return int(np.count_nonzero(self.tokens))

    @property
    def num_faults(self) -> int:
        return int((self.tokens == FAULTY).sum())

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of the rows that can be used."""
        return self.tokens[self.tokens > 0]

    @property
    def known_texts(self) -> np.ndarray:
        return self.texts[self.texts > 0]

    @property
    def read_told(self) -> str:
        if self.num_read == self.num_rows:
            return f"all {self.num_rows:,} rows are read"
        return f"{self.num_read:,} of {self.num_rows:,} rows are read"

    def as_dict(self) -> dict[str, Any]:
        # Of rows, also where one has several labels; of words, where labels are theirs.
        total = self.labels.total() if self.repeats else self.num_gold
        lengths, num_cut = self.lengths, self.num_cut[self.num_cut > 0]
        return {
            "rows": self.num_rows,
            "read": self.num_read,
            "faulty": self.num_faults,
            "labels": {label: {"count": count, "share": count / total} for label, count in self.labels.most_common()},
            "tokens": token_lengths(lengths),
            "rows_cut": len(num_cut),
            "share_cut": len(num_cut) / max(1, len(lengths)),
            "tokens_cut": int(num_cut.sum()),
            "share_tokens_cut": int(num_cut.sum()) / max(1, int(lengths.sum())),
        }


def token_lengths(lengths: np.ndarray) -> dict[str, float] | None:
    """Of nothing there is nothing to tell."""
    if not len(lengths):
        return None
    median, high = np.percentile(lengths, [50, 95])
    return {"mean": float(lengths.mean()), "median": float(median), "95%": float(high), "longest": int(lengths.max())}


def text_hash(task: Task, values: Values) -> int:
    """Of what the model reads of a row, however it is spaced and capitalised; 0 where it reads nothing."""
    inputs = [" ".join(_texts(values[role])) for role in task.roles if role in values and role not in task.targets]
    alike = [" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in inputs]
    return exact_hash("\n".join(alike)) if any(alike) else 0


def _texts(value: Any) -> Iterable[str]:
    return map(str, value) if isinstance(value, list | tuple) else [str(value)]


def _part_lines(name: str, rows: SeenRows, length: int) -> list[str]:
    told = rows.as_dict()
    faulty = f", {rows.num_faults:,} cannot be used" if rows.num_faults else ""
    lines = [f"{name}: {rows.read_told}{faulty}"]
    if told["labels"]:
        shares = [f"{shortened(label, LABEL_COLUMNS)} {one['share']:.1%}" for label, one in told["labels"].items()]
        lines.append("  labels: " + listed(shares, COLUMNS - 10))
    if told["tokens"]:
        lengths = told["tokens"]
        lines.append(
            f"  tokens a row: mean {lengths['mean']:,.1f}, median {lengths['median']:,.0f}, "
            f"95% {lengths['95%']:,.0f}, longest {lengths['longest']:,}"
        )
        lost = f", {told['tokens_cut']:,} tokens lost ({told['share_tokens_cut']:.1%})" if told["rows_cut"] else ""
        share = f"{told['rows_cut']:,} of {len(rows.lengths):,} rows ({told['share_cut']:.1%})"
        lines.append(f"  cut at {length:,}: {share}{lost}")
    return lines
