"""Describes labelled rows: counts for people and for data_card.json.

Before training, a sample spread over the rows is read. The first epoch reads all the others, and the card counts them,
too: it always states how many rows it describes. A row costs 16 bytes.

Axes: N rows.
"""

import unicodedata
from collections import Counter
from typing import Any

import numpy as np

from bertie.data.duplicates import exact_hash
from bertie.tasks.metrics.majority import Majority
from bertie.tasks.task import Example, Task, Values
from bertie.text.one_line import listed, shortened
from bertie.text.tokenizers.tokens import SUSPICIOUS, SpecialTokens, UnknownCount

DATA_CARD = "data_card.json"
SAMPLE = 2000  # rows that are read before training
KEPT_GOLD = 20_000  # of the first rows: enough to find the most frequent answer
COLUMNS = 100  # of a line in the terminal
LABEL_COLUMNS = 30
FAULTY = -1


class DataCard:
    """Give `train.add` and `dev.add` every row that is read."""

    def __init__(
        self, task: Task, max_length: int, num_train: int, num_dev: int = 0, special: SpecialTokens | None = None
    ):
        self.task, self.max_length = task, max_length
        special = special or SpecialTokens()
        self.train, self.dev = RowFacts(task, num_train, special), RowFacts(task, num_dev, special)

    @property
    def majority(self) -> Majority | None:
        """Measured on dev, or on train where there is no dev."""
        measured = self.dev if self.dev.num_rows else self.train
        if not self.train.gold or not measured.gold:
            return None
        return self.task.majority(self.train.gold, measured.gold)

    def as_dict(self) -> dict[str, Any]:
        """What data_card.json holds. `also_in_train` counts the rows of dev, of those read, whose texts are also in
        train, as far as it was read."""
        found = self.majority
        baseline = None if found is None else {"answer": found.answer, "metric": found.metric, "score": found.score}
        dev = None
        if self.dev.num_rows:
            known = self.train.texts[self.train.texts > 0]
            repeated = int(np.isin(self.dev.texts[self.dev.texts > 0], known).sum())
            dev = {**self.dev.as_dict(), "also_in_train": repeated}
        return {"length": self.max_length, "train": self.train.as_dict(), "dev": dev, "majority": baseline}

    def lines(self) -> list[str]:
        """For the terminal."""
        card, lines = self.as_dict(), []
        for name in ("train", "dev") if card["dev"] else ("train",):
            rows = card[name]
            read = "all" if rows["read"] == rows["rows"] else f"{rows['read']:,} of"
            faulty = f", {rows['faulty']:,} cannot be used" if rows["faulty"] else ""
            lines.append(f"{name}: {read} {rows['rows']:,} rows are read{faulty}")
            if rows["labels"]:
                labels = rows["labels"].items()
                shares = [f"{shortened(label, LABEL_COLUMNS)} {one['share']:.1%}" for label, one in labels]
                lines.append("  labels: " + listed(shares, COLUMNS - 10))
            if tokens := rows["tokens"]:
                sizes = f"mean {tokens['mean']:,.1f}, median {tokens['median']:,.0f}, 95% {tokens['95%']:,.0f}"
                no_cut = "" if rows["rows_cut"] else f"; no row is cut at {self.max_length:,}"
                lines.append(f"  tokens per row: {sizes}, longest {tokens['longest']:,}{no_cut}")
            if rows["rows_cut"]:
                share = f"{rows['rows_cut']:,} of {rows['read'] - rows['faulty']:,} rows ({rows['share_cut']:.1%})"
                lost = f"{rows['tokens_cut']:,} tokens lost ({rows['share_tokens_cut']:.1%})"
                lines.append(f"  cut at {self.max_length:,}: {share}, {lost}")
            if rows["share_unknown"] > SUSPICIOUS:
                lines.append(f"  unknown tokens: {rows['share_unknown']:.1%}; the vocabulary does not suit this text")
        if card["dev"]:
            count = card["dev"]["also_in_train"]
            share = f" ({count / card['dev']['read']:.1%})" if count else ""
            read, num_rows = card["train"]["read"], card["train"]["rows"]
            partly = f" ({read:,} of {num_rows:,} rows are read)" if read < num_rows else ""
            lines.append(f"rows of dev that are also in train{partly}: {count:,}{share}")
        if found := card["majority"]:
            answer = shortened(found["answer"], LABEL_COLUMNS * 2)
            lines.append(f"always answering {answer}: {found['metric']} {found['score']:.4f}")
        return lines


class RowFacts:
    """What is known about the rows of train, or of dev. A row that is read again is not counted again."""

    def __init__(self, task: Task, num_rows: int, special: SpecialTokens):
        self.task, self.num_rows, self.special, self.unknown = task, num_rows, special, UnknownCount()
        self.tokens = np.zeros(num_rows, np.int32)  # [N] as if nothing were cut; 0 before the row is read
        self.num_cut = np.zeros(num_rows, np.int32)  # [N] tokens
        self.texts = np.zeros(num_rows, np.uint64)  # [N] hashes; 0 where there is no text
        self.labels: Counter[str] = Counter()
        self.num_gold, self.repeats = 0, False  # rows with gold; whether one has the same label twice
        self.gold: list[Any] = []

    def add(self, number: int, example: Example | None) -> None:
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
        for sample in example.samples:
            self.unknown = self.unknown.plus(self.special.count_unknown(np.asarray(sample["tokens"])))
        self.texts[number] = text_hash(self.task, example.values)
        if example.gold is not None:
            labels = self.task.labels_of(example.gold)
            self.labels.update(labels)
            self.num_gold += 1
            self.repeats = self.repeats or len(set(labels)) < len(labels)
            if len(self.gold) < KEPT_GOLD:
                self.gold.append(example.gold)

    def as_dict(self) -> dict[str, Any]:
        # Shares of rows, also where a row has several labels; of words, where labels are theirs.
        total = self.labels.total() if self.repeats else self.num_gold
        lengths, num_cut = self.tokens[self.tokens > 0], self.num_cut[self.num_cut > 0]
        tokens = None
        if len(lengths):
            median, high = np.percentile(lengths, [50, 95])
            tokens = {"mean": float(lengths.mean()), "median": float(median), "95%": float(high)}
            tokens["longest"] = int(lengths.max())
        return {
            "rows": self.num_rows,
            "read": int(np.count_nonzero(self.tokens)),
            "faulty": int((self.tokens == FAULTY).sum()),
            "labels": {label: {"count": count, "share": count / total} for label, count in self.labels.most_common()},
            "tokens": tokens,
            "tokens_unknown": self.unknown.num_unknown,
            "share_unknown": self.unknown.num_unknown / max(1, self.unknown.num_tokens),
            "rows_cut": len(num_cut),
            "share_cut": len(num_cut) / max(1, len(lengths)),
            "tokens_cut": int(num_cut.sum()),
            "share_tokens_cut": int(num_cut.sum()) / max(1, int(lengths.sum())),
        }


def text_hash(task: Task, values: Values) -> int:
    """Of what the model reads of a row, ignoring spaces and capitals; 0 where it reads nothing."""
    inputs = [values[role] for role in task.roles if role in values and role not in task.targets]
    texts = [" ".join(map(str, one)) if isinstance(one, list | tuple) else str(one) for one in inputs]
    alike = [" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in texts]
    return exact_hash("\n".join(alike)) if any(alike) else 0
