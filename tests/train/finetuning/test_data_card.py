"""The data card: every figure against one made by hand, from a sample to the last row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from bertie.data.rows.rows import spread_numbers
from bertie.tasks.answering import Answering
from bertie.tasks.classification import Classify
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Example, Task, Values
from bertie.train.finetuning.data_card import SAMPLE, DataCard, text_hash

CLASSIFY = Classify(labels=("neg", "pos"))


def example(gold: Any, values: Values, tokens: Sequence[int] = (5,), num_cut: int = 0) -> Example:
    """`tokens`: how many each sample has."""
    samples = tuple({"tokens": np.zeros(size, np.int64)} for size in tokens)
    return Example(samples, gold, num_cut=num_cut, values=values)


def label(gold: str | None, text: str, tokens: int = 5, num_cut: int = 0) -> Example:
    return example(gold, {"text": text, "label": gold}, (tokens,), num_cut)


def test_every_figure() -> None:
    card = DataCard(CLASSIFY, 12, num_train=6, num_dev=3)
    train = [label("pos", "A"), label("pos", "b", 8), label("neg", "c", 12, 8), None, label("pos", "d", 7)]
    for number, one in enumerate(train):
        card.train.add(number, one)
    for number, one in enumerate([label("neg", " a "), label("pos", "e"), label("neg", "C")]):
        card.dev.add(number, one)
    found = card.as_dict()
    assert found["length"] == 12
    assert found["train"] == {
        "rows": 6,
        "read": 5,
        "faulty": 1,
        "labels": {"pos": {"count": 3, "share": 0.75}, "neg": {"count": 1, "share": 0.25}},
        "tokens": {"mean": 10.0, "median": 7.5, "95%": pytest.approx(18.2), "longest": 20},  # of 5, 7, 8, 20
        "tokens_unknown": 0,
        "share_unknown": 0.0,
        "rows_cut": 1,
        "share_cut": 0.25,
        "tokens_cut": 8,
        "share_tokens_cut": 0.2,
    }
    assert found["dev"]["also_in_train"] == 2
    assert found["dev"]["labels"]["neg"] == {"count": 2, "share": pytest.approx(2 / 3)}
    assert found["majority"] == {"answer": "pos", "metric": "accuracy", "score": pytest.approx(1 / 3)}
    assert card.lines() == [
        "train: 5 of 6 rows are read, 1 cannot be used",
        "  labels: pos 75.0%, neg 25.0%",
        "  tokens per row: mean 10.0, median 8, 95% 18, longest 20",
        "  cut at 12: 1 of 4 rows (25.0%), 8 tokens lost (20.0%)",
        "dev: all 3 rows are read",
        "  labels: neg 66.7%, pos 33.3%",
        "  tokens per row: mean 5.0, median 5, 95% 5, longest 5; no row is cut at 12",
        "rows of dev that are also in train (5 of 6 rows are read): 2 (66.7%)",
        "always answering pos: accuracy 0.3333",
    ]


def test_a_sample_is_spread_and_then_completed() -> None:
    num_rows = 5 * SAMPLE
    card = DataCard(CLASSIFY, 128, num_rows)
    read: list[int] = []

    def sorted_by_label(number: int) -> Example:
        read.append(number)
        return label("neg" if number < num_rows // 2 else "pos", str(number))

    for number in spread_numbers(num_rows, SAMPLE):
        card.train.add(number, sorted_by_label(number))
    assert len(read) == SAMPLE == card.as_dict()["train"]["read"]
    assert card.train.labels == {"neg": SAMPLE // 2, "pos": SAMPLE // 2}
    for epoch in range(2):
        for number in range(num_rows):
            card.train.add(number, sorted_by_label(number))
        assert card.as_dict()["train"]["read"] == num_rows, epoch
        assert card.train.labels == {"neg": num_rows // 2, "pos": num_rows // 2}
    assert card.lines()[0] == f"train: all {num_rows:,} rows are read"


def test_without_dev_the_majority_is_that_of_train() -> None:
    card = DataCard(CLASSIFY, 128, 3)
    for number, gold in enumerate(["neg", "neg", "pos"]):
        card.train.add(number, label(gold, gold))
    assert card.as_dict()["dev"] is None
    assert card.lines()[-1] == "always answering neg: accuracy 0.6667"
    assert not any("dev" in line for line in card.lines())


@pytest.mark.parametrize(
    ("task", "gold", "values", "labels"),
    [
        (MultiLabel(labels=("a", "b")), ["a", "b"], {"text": "t", "label": "a,b"}, {"a": 1, "b": 1}),
        (Tagging(tags=("O", "B-X")), ["O", "B-X", "O"], {"words": ["x", "y", "z"]}, {"O": 2, "B-X": 1}),
        (Similarity(), 0.5, {"text": "t", "other": "u"}, {}),
        (Answering(), ["x"], {"question": "q", "passage": "p x"}, {}),
    ],
)
def test_labels_of_other_tasks(task: Task, gold: Any, values: Values, labels: dict[str, int]) -> None:
    card = DataCard(task, 128, 1)
    card.train.add(0, example(gold, values, (5, 7)))
    assert card.train.labels == labels
    shares = {name: one["share"] for name, one in card.as_dict()["train"]["labels"].items()}
    assert shares == (
        {"a": 1.0, "b": 1.0} if isinstance(task, MultiLabel) else pytest.approx({k: v / 3 for k, v in labels.items()})
    )
    assert card.as_dict()["train"]["tokens"]["longest"] == 12  # of both windows
    assert any(line.startswith("  labels") for line in card.lines()) == bool(labels)


def test_nothing_read_nothing_described() -> None:
    card = DataCard(CLASSIFY, 128, 4, 2)
    assert card.lines() == [
        "train: 0 of 4 rows are read",
        "dev: 0 of 2 rows are read",
        "rows of dev that are also in train (0 of 4 rows are read): 0",
    ]
    assert card.as_dict()["train"]["tokens"] is None
    card.train.add(0, None)
    card.train.add(1, example(None, {}))  # a row without gold and without what it was read from
    card.dev.add(0, example(None, {}))
    assert card.as_dict()["dev"]["also_in_train"] == 0 and card.majority is None


def test_what_counts_as_the_same_text() -> None:
    same = text_hash(CLASSIFY, {"text": "Ａ  cat\nsat", "label": "neg"})
    assert same == text_hash(CLASSIFY, {"text": "a CAT sat ", "label": "pos"})
    assert same != text_hash(CLASSIFY, {"text": "a cat", "other": "sat"})
    assert text_hash(CLASSIFY, {"text": "a", "other": "b"}) != text_hash(CLASSIFY, {"text": "b", "other": "a"})
    words = Tagging(tags=("O",))
    assert text_hash(words, {"words": ["a", "cat"], "tags": ["O", "O"]}) == text_hash(words, {"words": "a cat"})
    assert text_hash(words, {"words": ["a"], "marked": 0}) != text_hash(words, {"words": ["a"], "marked": 1})
    assert text_hash(CLASSIFY, {}) == 0


def test_lines_are_never_wide() -> None:
    labels = tuple(f"类别{number}：" + "很长的标签" * 10 for number in range(500))
    card = DataCard(Classify(labels=labels), 128, len(labels), 1)
    for number, gold in enumerate(labels):
        card.train.add(number, label(gold, f"文本{number}", 200, 1_000_000))
    card.dev.add(0, label(labels[0], "文本7"))
    lines = card.lines()
    assert max(map(cell_len, lines)) <= 100
    assert "more" in lines[1] and "…" in lines[1]
    assert "rows of dev that are also in train: 1 (100.0%)" in lines
