"""The report of a task model: every figure against one made by hand, in the terminal and on the page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.classification import Classify
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Example, Task
from bertie.train.folder.history import read_history
from bertie.train.reports.origin import Origin
from bertie.train.reports.task_page import task_page
from bertie.train.reports.task_report import TaskReport, confusion_table, report_task, terminal_lines

POLARITY = Classify(labels=("neg", "pos"))


def polarity(told: Sequence[str], gold: Sequence[str], texts: Sequence[str] | None = None) -> TaskReport:
    texts = texts or [f"text {number}" for number in range(len(gold))]
    examples = [
        Example((), one, values={"text": text, "label": one}, where=f"dev.tsv:{number}")
        for number, (one, text) in enumerate(zip(gold, texts, strict=True), start=1)
    ]
    answers = [sure(label, POLARITY.labels) for label in told]
    return report_task(POLARITY, examples, answers, name="model")


def sure(label: str, labels: Sequence[str], probability: float = 0.9) -> Answer:
    rest = (1 - probability) / max(1, len(labels) - 1)
    probabilities = {one: probability if one == label else rest for one in labels}
    return {"label": label, "probability": probability, "probabilities": probabilities}


def test_every_figure_of_labels() -> None:
    gold = ["neg"] * 4 + ["pos"] * 6
    told = ["neg", "neg", "neg", "pos"] + ["pos"] * 4 + ["neg"] * 2
    report = polarity(told, gold)
    assert (report.num_rows, report.mistakes.num_wrong) == (10, 3)
    assert report.metrics.values["accuracy"] == pytest.approx(0.7)
    (table,) = report.confusions
    assert (table.labels, table.counts.tolist(), table.note) == (("neg", "pos"), [[3, 1], [2, 4]], "")
    (scores,) = report.label_scores.values()
    assert scores["neg"] == pytest.approx({"precision": 3 / 5, "recall": 3 / 4, "f1": 2 / 3, "support": 4})
    assert scores["pos"] == pytest.approx({"precision": 4 / 5, "recall": 4 / 6, "f1": 8 / 11, "support": 6})
    assert {one.where for one in report.mistakes.worst} == {"dev.tsv:4", "dev.tsv:9", "dev.tsv:10"}
    interval = report.metrics.intervals["accuracy"]
    lines = terminal_lines(report)
    assert lines[0] == "model: 10 rows measured"
    assert f"  accuracy     0.7000  {interval.low:.4f} to {interval.high:.4f}" in lines
    assert any(line.startswith("  f1 of 'pos'  0.7273") for line in lines), "which label f1 is about"
    assert "f1 of &#39;pos&#39;" in task_page(report)
    assert "  (95% intervals from 1,000 draws of the rows)" in lines
    assert f"  {'neg':28}         3         1" in lines
    assert f"  {'pos':28}         2         4" in lines
    assert f"  {'neg':28}    0.6000    0.7500    0.6667         4" in lines
    assert "the worst 3 of 3 rows with errors" in lines
    assert "    predicted: pos (90%)" in lines and "    text: text 3" in lines


def test_one_label_only() -> None:
    report = polarity(["neg"] * 3, ["neg"] * 3)
    assert report.confusions[0].counts.tolist() == [[3]]
    assert report.mistakes.worst == () and not any("worst" in line for line in terminal_lines(report))
    assert "none" in task_page(report)


def test_nothing_to_measure() -> None:
    for examples in ([], [Example((), None, values={"text": "no gold"})]):
        report = report_task(POLARITY, examples, [sure("neg", POLARITY.labels)] * len(examples), name="model")
        assert (report.num_rows, report.num_without_gold) == (0, len(examples))
        assert (report.confusions, report.label_scores, report.metrics.values) == ((), {}, {})
        assert terminal_lines(report)[0] == "model: no row has gold, nothing to measure"
        assert "nothing to measure" in task_page(report)
    assert "  1 rows without gold are left out" in terminal_lines(report)


def test_a_large_table_shows_the_labels_that_are_confused_most() -> None:
    # Label k is right 100 - k times, and taken for the last one k times: the rarest are confused most.
    pairs = [(str(label), str(label)) for label in range(1, 31) for _ in range(100 - label)]
    pairs += [(str(label), "30") for label in range(1, 30) for _ in range(label)]
    table = confusion_table("label", pairs)
    assert table.labels == tuple(str(label) for label in range(11, 31))
    assert table.counts.diagonal().tolist() == [100 - label for label in range(11, 31)]
    assert table.counts[:, -1].tolist() == [*range(11, 30), 70]
    assert table.note == (
        f"Only the 20 labels that are confused most often are shown, of 30: {sum(range(11, 30))} of all "
        f"{sum(range(30))} mistakes are between them."
    )
    assert table.confused[:2] == [("29", "30", 29), ("28", "30", 28)] and len(table.confused) == 29
    small = confusion_table("label", [("a", "a"), ("a", "b")])
    assert (small.labels, small.note) == (("a", "b"), "")


def many_labels() -> TaskReport:
    """Of thirty labels, each is wrong once."""
    task = Classify(labels=tuple(f"label_{number:02}" for number in range(30)))
    gold = [label for label in task.labels for _ in range(3)]
    told = [task.labels[number // 3 - number % 3 // 2] for number in range(90)]
    return report_task(task, [Example((), one) for one in gold], [sure(one, task.labels) for one in told], name="many")


def test_many_labels_are_listed_in_pairs() -> None:
    lines, page = terminal_lines(many_labels()), task_page(many_labels()).replace("<wbr>", "")
    assert "label: 30 labels, 30 mistakes; the 8 most frequent" in lines
    assert f"  {'label_00':32}  {'label_29':32}           1" in lines
    assert not any("gold in rows" in line for line in lines)
    assert "Only the 20 labels that are confused most often are shown, of 30" in page
    assert "Gold labels are rows, predicted labels are columns." in page and "<h3>Confused most often</h3>" in page
    assert '<td>label_00</td><td class="words">label_29</td><td>1</td>' in page


def tagged(words: str, gold: str, told: str, task: Tagging) -> tuple[Example, Answer]:
    example = Example((), gold.split(), {"words": words.split()}, values={"words": words.split()}, where="dev.txt:1")
    return example, {"words": words.split(), "tags": told.split()}


def test_entities_by_type() -> None:
    task = Tagging(tags=("O", "B-LOC", "B-PER", "I-PER"), scheme="IOB2")
    pairs = [
        tagged("Ann Lee saw Paris", "B-PER I-PER O B-LOC", "B-PER O O B-LOC", task),
        tagged("she left Rome", "O O B-LOC", "O O B-LOC", task),
    ]
    report = report_task(task, [one for one, _ in pairs], [one for _, one in pairs], name="tags")
    scores = report.label_scores["entity"]
    assert scores["LOC"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 2.0}
    assert scores["PER"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1.0}
    assert report.metrics.values["f1"] == pytest.approx(2 / 3)
    (mistake,) = report.mistakes.worst
    assert (mistake.gold, mistake.predicted) == ("Lee/I-PER", "Lee/O")
    assert "Scores by entity" in task_page(report)


def test_many_labels_a_row() -> None:
    task = MultiLabel(labels=("a", "b"), thresholds=(0.5, 0.5))
    gold, told = [["a"], ["a", "b"], []], [["a"], ["b"], ["b"]]
    answers: list[Answer] = [
        {"labels": one, "probabilities": {label: float(label in one) for label in "ab"}} for one in told
    ]
    report = report_task(task, [Example((), one) for one in gold], answers, name="many")
    scores = report.label_scores["label"]
    assert scores["a"] == pytest.approx({"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "support": 2})
    assert scores["b"] == pytest.approx({"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "support": 1})
    assert report.mistakes.num_wrong == 2


def test_many_aspects_have_their_tables_on_the_page() -> None:
    task = Aspects(aspects=dict.fromkeys(("price", "food", "place"), ("bad", "good")))
    gold, told = (dict.fromkeys(task.aspects, label) for label in ("bad", "good"))
    answer = {**told, "probabilities": {name: {"bad": 0.1, "good": 0.9} for name in task.aspects}}
    report = report_task(task, [Example((), gold)], [answer], name="aspects")
    assert [one.what for one in report.confusions] == ["price", "food", "place"]
    assert "1 more tables are in the HTML report" in terminal_lines(report)
    assert task_page(report).count("Confusion: ") == 3


@pytest.mark.parametrize(
    ("task", "gold", "answer"),
    [
        (Similarity(), 1.0, {"score": 0.25}),
        (Answering(), ["x"], {"text": "y", "start": 0, "score": 1.0, "no_answer_score": -1.0, "nbest": []}),
    ],
)
def test_tasks_without_labels(task: Task, gold: Any, answer: Answer) -> None:
    report = report_task(task, [Example((), gold)] * 2, [answer] * 2, name="no labels")
    assert (report.confusions, report.label_scores) == ((), {})
    assert report.mistakes.num_wrong == 2
    assert "Confusion" not in task_page(report) and task.main in "".join(terminal_lines(report))


VOID = {"meta", "wbr"}


def a_card_of(*labels: str) -> dict[str, Any]:
    counts = {"rows": 10, "read": 8, "faulty": 1, "rows_cut": 2, "tokens_cut": 3}
    shares = {"share_cut": 0.25, "share_tokens_cut": 0.05}
    tokens = {"mean": 6.5, "median": 6.0, "95%": 8.0, "longest": 11}
    return {**counts, **shares, "tokens": tokens, "labels": {one: {"count": 4, "share": 0.5} for one in labels}}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone(fake_run: Callable[..., Path]) -> None:
    nasty = '<script>alert("x")</script> & <b>'
    labels = (nasty, "好评")
    task = Classify(labels=labels)
    examples = [Example((), gold, values={"text": f"{nasty} 语言", "label": gold}, where=nasty) for gold in labels]
    log: list[dict[str, object]] = [
        {"event": "step", "step": 1, "tokens": 9, "seconds": 1.0, "loss": 0.7, "tokens_per_second": 9.0},
        {"event": "evaluation", "step": 1, "loss": 0.6, "accuracy": 0.5, "f1": 0.4},
        {"event": "step", "step": 2, "tokens": 18, "seconds": 2.0, "loss": 0.5, "tokens_per_second": 9.0},
        {"event": "evaluation", "step": 2, "loss": 0.5, "accuracy": 0.75, "f1": 0.5},
    ]
    history = read_history(fake_run("run", records=log))
    answers = [sure(label, labels) for label in reversed(labels)]
    origin = Origin({"model": nasty}, {"options": nasty})
    card = {"length": 8, "train": a_card_of(nasty, "中文"), "dev": None, "majority": None}
    report = report_task(task, examples, answers, name=nasty, history=history, card=card, origin=origin)
    page = task_page(report)
    reader = Reader()
    reader.feed(page)
    assert reader.open == [] and not {"script", "b"} & set(reader.seen)
    assert not re.search(r"https?:|url\(|@import", page)
    assert reader.seen.count("svg") == 3  # loss, accuracy, and the other metrics
    assert [line for line in ("Learning curve: accuracy", "other metrics, held out") if line not in reader.text] == []
    assert reader.seen.count("blockquote") == 2
    assert reader.text.count(nasty) >= 10 and "好评" in reader.text and "中文" in reader.text
    assert "prefers-color-scheme: dark" in page and '<meta charset="utf-8">' in page


def test_lines_are_never_wide() -> None:
    rng = np.random.default_rng(0)
    labels = tuple(f"很长很长很长很长的标签{number}" for number in range(40))
    gold, told = ([str(label) for label in rng.choice(labels, 200)] for _ in range(2))
    task = Classify(labels=labels)
    examples = [Example((), one, values={"text": "长文本\x1b[31m" * 200}, where="f" * 300) for one in gold]
    lines = terminal_lines(report_task(task, examples, [sure(one, labels) for one in told], name="宽"))
    assert max(map(cell_len, lines)) <= 80
    assert not any("\x1b" in line for line in lines)
    assert any(line.strip() == "28 rarer ones are in the HTML report" for line in lines)
    assert any("40 labels, " in line and "the 8 most frequent" in line for line in lines)
    few = Classify(labels=labels[:5])
    told = [label for label in labels[:5] for _ in range(5)]
    answers = [sure(label, few.labels) for _ in range(5) for label in few.labels]
    lines = terminal_lines(report_task(few, [Example((), one) for one in told], answers, name="few"))
    assert any("gold in rows" in line for line in lines) and max(map(cell_len, lines)) <= 80


def test_metrics_are_not_called_losses() -> None:
    page = task_page(polarity(["neg", "pos"], ["neg", "neg"]))
    assert "<td>macro f1</td>" in page and "f1 loss" not in page and "matthews loss" not in page


def test_the_data_card_is_a_table() -> None:
    dev = {**a_card_of("neg"), "rows": 8, "also_in_train": 2, "unknown_pieces": 3}
    majority = {"answer": "neg", "metric": "macro_f1", "score": 0.25}
    card = {"length": 8, "train": a_card_of("neg", "pos"), "dev": dev, "majority": majority}
    page = task_page(replace(polarity(["neg"], ["neg"]), card=card))
    for row in (
        "<th></th><th>train</th><th>dev</th>",
        "<td>rows</td><td>10</td><td>8</td>",
        "<td>rows cut at 8 tokens</td><td>2 (25.0%)</td><td>2 (25.0%)</td>",
        "<td>longest</td><td>11</td><td>11</td>",
        "<td>also in train</td><td></td><td>2 (25.0%)</td>",
        "<td>unknown pieces</td><td></td><td>3</td>",
        "<td>neg</td><td>4</td><td>50.0%</td><td>4</td><td>50.0%</td>",
        "<td>pos</td><td>4</td><td>50.0%</td><td>0</td><td></td>",
    ):
        assert row in page, row
    assert "Always answering neg gives macro f1 0.2500." in page and "Figures are of the rows that were read." in page
    assert "<pre>" not in page
