"""How good a task model is: examples and its answers enter, a `TaskReport` leaves, and the lines of it for a terminal.

The same report as one HTML page is task_page.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertie.inspection.chart import Chart, Line
from bertie.inspection.task_intervals import SECONDS, MeasuredMetrics, label_rows, measured_metrics
from bertie.inspection.task_mistakes import Mistakes, find_mistakes
from bertie.inspection.text_chart import draw_text
from bertie.tasks.classification import MultiLabel
from bertie.tasks.label_sets import sorted_labels
from bertie.tasks.metrics.entities import entity_scores_by_label
from bertie.tasks.metrics.labels import confusion, label_scores, scores_of_counts
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Example, Task
from bertie.text.one_line import padded, shortened
from bertie.train.history import RunHistory

MOST_LABELS = 20  # of a table of confusion
# In the terminal: tables of one kind, labels of a table of confusion, labels with scores, mistakes, columns.
TABLES, CONFUSED, SCORED, MISTAKES, COLUMNS = 2, 8, 12, 5, 100
LABEL, CELL = 18, 10  # columns
CURVE_ROWS = 8  # of the learning curve
FIGURES = ("precision", "recall", "f1")

Scores = Mapping[str, Mapping[str, float]]  # by label: precision, recall, f1, support


@dataclass(frozen=True)
class ConfusionTable:
    what: str  # is labelled: "label", "word", an aspect
    labels: tuple[str, ...]  # those shown, K
    counts: np.ndarray  # [K, K] a row is a gold label, a column a told one
    num_labels: int  # those that occur
    num_pairs: int

    def narrowed(self, most: int) -> "ConfusionTable":
        """The most frequent labels alone."""
        frequency = self.counts.sum(0) + self.counts.sum(1)
        kept = np.sort(np.argsort(-frequency, kind="stable")[:most])
        labels = tuple(self.labels[number] for number in kept)
        return ConfusionTable(self.what, labels, self.counts[np.ix_(kept, kept)], self.num_labels, self.num_pairs)

    @property
    def note(self) -> str:
        """What the table does not show, in one sentence; nothing where it shows all."""
        hidden, pairs = self.num_labels - len(self.labels), self.num_pairs - int(self.counts.sum())
        if not hidden:
            return ""
        return f"{hidden:,} rarer labels are not shown; one of them is gold or told in {pairs:,} of {self.num_pairs:,}"


@dataclass(frozen=True)
class TaskReport:
    name: str  # of what was measured
    task: str
    main: str  # the metric that decides
    num_rows: int
    num_without_gold: int  # rows that say nothing of the model, and are left out
    metrics: MeasuredMetrics
    confusions: tuple[ConfusionTable, ...]
    label_scores: Mapping[str, Scores]  # by what is labelled
    mistakes: Mistakes
    history: RunHistory | None = None
    data: tuple[str, ...] = ()  # the lines of the data card


def report_task(
    task: Task,
    examples: Sequence[Example],
    answers: Sequence[Answer],
    *,
    name: str,
    history: RunHistory | None = None,
    data: Sequence[str] = (),
    seconds: float = SECONDS,
) -> TaskReport:
    """Intervals take at most so many seconds, and as many draws as can be made in them."""
    pairs = zip(examples, answers, strict=True)
    measured = [(example, answer) for example, answer in pairs if example.gold is not None]
    kept, told, gold = [one for one, _ in measured], [one for _, one in measured], [one.gold for one, _ in measured]
    labelled = {what: found for what, found in task.labels_told(told, gold).items() if found} if told else {}
    return TaskReport(
        name=name,
        task=str(task.kind),
        main=task.main,
        num_rows=len(kept),
        num_without_gold=len(examples) - len(kept),
        metrics=measured_metrics(task, told, gold, seconds=seconds),
        confusions=tuple(confusion_table(what, found) for what, found in labelled.items()),
        label_scores=scores_by_label(task, told, gold, labelled),
        mistakes=find_mistakes(task, kept, told),
        history=history,
        data=tuple(data),
    )


def confusion_table(what: str, pairs: Sequence[tuple[str, str]], most: int = MOST_LABELS) -> ConfusionTable:
    """Of the labels that are most often gold or told, numbers and words in their order."""
    frequency = Counter(label for pair in pairs for label in pair)
    labels = sorted_labels(label for label, _ in frequency.most_common(most))
    shown = set(labels)
    kept = [(one, other) for one, other in pairs if one in shown and other in shown]
    counts = confusion([one for one, _ in kept], [other for _, other in kept], labels)
    return ConfusionTable(what, labels, counts, len(frequency), len(pairs))


def scores_by_label(
    task: Task, answers: Sequence[Answer], gold: Sequence[Any], labelled: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Scores]:
    """Of spans their types, else the labels."""
    if not answers:
        return {}
    if isinstance(task, Tagging) and task.scheme is not None:
        return {"entity": entity_scores_by_label(list(gold), [answer["tags"] for answer in answers])}
    if isinstance(task, MultiLabel):
        wanted, told = label_rows(gold, task.labels), label_rows([answer["labels"] for answer in answers], task.labels)
        columns = scores_of_counts((wanted & told).sum(0), told.sum(0), wanted.sum(0))
        names = columns.items()
        return {"label": {label: {name: float(one[k]) for name, one in names} for k, label in enumerate(task.labels)}}
    return {what: label_scores(*map(list, zip(*pairs, strict=True))) for what, pairs in labelled.items()}


def most_supported(scores: Scores, most: int) -> list[str]:
    """The labels that are most often gold, in the order of all."""
    chosen = sorted(scores, key=lambda label: -scores[label]["support"])[:most]
    return [label for label in scores if label in set(chosen)]


def spoken(metric: str) -> str:
    return metric.replace("_", " ")


def intervals_told(metrics: MeasuredMetrics) -> str:
    if not metrics.values:
        return ""
    if not metrics.intervals:
        return f"no intervals: only {metrics.num_rounds:,} draws could be made in the time there was"
    return f"95% intervals from {metrics.num_rounds:,} draws of the {metrics.unit}"


def metric_told(metrics: MeasuredMetrics, name: str) -> tuple[str, str]:
    """Its value and its interval."""
    found = metrics.intervals.get(name)
    return f"{metrics.values[name]:.4f}", "" if found is None else f"{found.low:.4f} to {found.high:.4f}"


def terminal_lines(report: TaskReport) -> list[str]:
    """Metrics, a small table of confusion, scores of labels, the worst mistakes."""
    if not report.num_rows:
        return [f"{report.name}: no row with gold, nothing to measure", *_without_gold(report)]
    wrong = report.mistakes.num_wrong
    lines = [f"{report.name}: {report.num_rows:,} rows measured", *_without_gold(report)]
    width = max(map(len, report.metrics.values))
    for name in report.metrics.values:
        value, interval = metric_told(report.metrics, name)
        lines.append(f"  {name:{width}}  {value}  {interval}".rstrip())
    lines.append(f"  ({intervals_told(report.metrics)})")
    lines += _tables(report)
    if report.history is not None and len(measured := report.history.held_out(report.main)) > 1:
        chart = Chart(spoken(report.main), "steps", [Line("held out", measured, "o")])
        lines += ["", *draw_text(chart, COLUMNS - 12, CURVE_ROWS)]
    shown = report.mistakes.worst[:MISTAKES]
    if shown:
        lines += ["", f"the worst {len(shown)} of {wrong:,} rows that are not wholly right"]
    for mistake in shown:
        lines.append("  " + shortened(mistake.where, COLUMNS - 2))
        lines += ["    " + shortened(f"{role}: {text}", COLUMNS - 4) for role, text in mistake.texts.items()]
        lines += ["    " + shortened(f"{name}: {said}", COLUMNS - 4) for name, said in _two(mistake.gold, mistake.told)]
    return lines


def _two(gold: str, told: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("gold", gold), ("told", told)


def _without_gold(report: TaskReport) -> list[str]:
    return [f"  {report.num_without_gold:,} rows without gold are left out"] if report.num_without_gold else []


def _tables(report: TaskReport) -> Iterator[str]:
    for table in report.confusions[:TABLES]:
        yield from _confusion_lines(table.narrowed(CONFUSED))
    for what, scores in list(report.label_scores.items())[:TABLES]:
        yield from _score_lines(what, scores)
    hidden = max(len(report.confusions), len(report.label_scores)) - TABLES
    if hidden > 0:
        yield f"tables of {hidden:,} more are in the HTML report"


def _confusion_lines(table: ConfusionTable) -> Iterator[str]:
    yield ""
    yield f"{table.what}: gold in rows, told in columns"
    yield "  " + " " * LABEL + "".join(" " + padded(label, CELL - 1, right=True) for label in table.labels)
    for label, row in zip(table.labels, table.counts.tolist(), strict=True):
        yield f"  {padded(label, LABEL)}" + "".join(f"{count:{CELL},}" for count in row)
    if table.note:
        yield f"  {table.note}"


def _score_lines(what: str, scores: Scores) -> Iterator[str]:
    yield ""
    yield f"{padded(what, LABEL + 2)}" + "".join(f"{name:>{CELL}}" for name in (*FIGURES, "support"))
    shown = most_supported(scores, SCORED)
    for label in shown:
        figures = "".join(f"{scores[label][name]:{CELL}.4f}" for name in FIGURES)
        yield f"  {padded(label or what, LABEL)}{figures}{scores[label]['support']:{CELL},.0f}"
    if len(shown) < len(scores):
        yield f"  {len(scores) - len(shown):,} rarer ones are in the HTML report"
