"""Reports how good a task model is: a `TaskReport`, and its lines for a terminal. task_page.py makes a page of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertie.reporting.chart import Chart, Line
from bertie.reporting.text_chart import draw_text
from bertie.tasks.label_sets import sorted_labels
from bertie.tasks.metrics.labels import confusion
from bertie.tasks.reports.mistakes import Mistakes, find_mistakes
from bertie.tasks.reports.task_intervals import SECONDS, MeasuredMetrics, measured_metrics
from bertie.tasks.task import Answer, Example, Scores, Task
from bertie.text.one_line import padded, shortened
from bertie.train.folder.history import RunHistory
from bertie.train.reports.origin import Origin
from bertie.train.reports.run_charts import figure_name

MOST_LABELS, MOST_PAIRS = 20, 20  # of a confusion table; pairs that are listed beside one that is not complete
# In the terminal: tables of one kind, labels of a confusion table, pairs of labels, labels with scores, mistakes.
TABLES, CONFUSED, CONFUSED_PAIRS, SCORED, MISTAKES = 2, 5, 8, 12, 5
COLUMNS, LABEL, CELL, PAIR = 80, 28, 10, 32  # of a line, a label, a figure, one of two labels
CURVE_ROWS = 8  # of the learning curve
FIGURES = ("precision", "recall", "f1")


@dataclass(frozen=True)
class ConfusionTable:
    what: str  # is labelled: "label", "word", an aspect
    labels: tuple[str, ...]  # those shown, K
    counts: np.ndarray  # [K, K] a row is a gold label, a column a predicted one
    num_labels: int  # those that occur
    confused: Sequence[tuple[str, str, int]]  # gold, predicted and how often, the most frequent first; not one is right

    @property
    def num_wrong(self) -> int:
        return sum(count for _, _, count in self.confused)

    @property
    def note(self) -> str:
        """What the table does not show, in one sentence; "" where it shows all."""
        if len(self.labels) == self.num_labels:
            return ""
        shown = int(self.counts.sum() - self.counts.trace())
        return (
            f"Only the {len(self.labels):,} labels that are confused most often are shown, of {self.num_labels:,}: "
            f"{shown:,} of all {self.num_wrong:,} mistakes are between them."
        )


@dataclass(frozen=True)
class TaskReport:
    name: str  # of what was measured
    task: str
    main: str  # the metric that decides
    num_rows: int
    num_without_gold: int  # rows that cannot measure the model, and are left out
    metrics: MeasuredMetrics
    confusions: tuple[ConfusionTable, ...]
    label_scores: Mapping[str, Scores]  # by what is labelled
    mistakes: Mistakes
    history: RunHistory | None = None
    card: Mapping[str, Any] | None = None  # what `DataCard.as_dict` gives
    origin: Origin | None = None
    positive: str | None = None  # the label that f1 is about, where it is about one

    def about(self, metric: str) -> str:
        """What follows the name of a metric: the label that it is about."""
        return f" of {self.positive!r}" if metric == "f1" and self.positive is not None else ""


def report_task(
    task: Task,
    examples: Sequence[Example],
    answers: Sequence[Answer],
    *,
    name: str,
    history: RunHistory | None = None,
    card: Mapping[str, Any] | None = None,
    origin: Origin | None = None,
    seconds: float = SECONDS,
) -> TaskReport:
    """Intervals take at most so many seconds."""
    both = zip(examples, answers, strict=True)
    measured = [(example, answer) for example, answer in both if example.gold is not None]
    kept, found, gold = [one for one, _ in measured], [one for _, one in measured], [one.gold for one, _ in measured]
    labelled = {what: pairs for what, pairs in task.label_pairs(found, gold).items() if pairs} if found else {}
    return TaskReport(
        name=name,
        task=str(task.kind),
        main=task.main,
        num_rows=len(kept),
        num_without_gold=len(examples) - len(kept),
        metrics=measured_metrics(task, found, gold, seconds=seconds),
        confusions=tuple(confusion_table(what, pairs) for what, pairs in labelled.items()),
        label_scores=task.scores_by_label(found, gold) if found else {},
        mistakes=find_mistakes(task, kept, found),
        history=history,
        card=card,
        origin=origin,
        positive=task.positive,
    )


def confusion_table(what: str, pairs: Sequence[tuple[str, str]], most: int = MOST_LABELS) -> ConfusionTable:
    """A table of all labels, or of those that are in most mistakes, in their order. Of labels with equally many, the
    more frequent one is shown."""
    frequency = Counter(label for pair in pairs for label in pair)
    confused = Counter(pair for pair in pairs if pair[0] != pair[1])
    mistakes: Counter[str] = Counter()
    for pair, count in confused.items():
        mistakes.update(dict.fromkeys(pair, count))
    ranked = sorted(frequency, key=lambda label: (-mistakes[label], -frequency[label]))
    labels = sorted_labels(ranked[:most])
    shown = set(labels)
    kept = [(one, other) for one, other in pairs if one in shown and other in shown]
    counts = confusion([one for one, _ in kept], [other for _, other in kept], labels)
    found = [(gold, predicted, count) for (gold, predicted), count in confused.most_common()]
    return ConfusionTable(what, labels, counts, len(frequency), found)


def most_supported(scores: Scores, most: int) -> list[str]:
    """The labels that are most often gold, in the order of all."""
    chosen = sorted(scores, key=lambda label: -scores[label]["support"])[:most]
    return [label for label in scores if label in set(chosen)]


def format_intervals(metrics: MeasuredMetrics) -> str:
    if not metrics.values:
        return ""
    if not metrics.intervals:
        return f"no intervals: only {metrics.num_rounds:,} draws were possible in the time"
    return f"95% intervals from {metrics.num_rounds:,} draws of the {metrics.unit}"


def format_metrics(metrics: MeasuredMetrics) -> dict[str, tuple[str, str]]:
    """The value and the interval of each."""
    found = metrics.intervals
    return {
        name: (f"{value:.4f}", f"{found[name].low:.4f} to {found[name].high:.4f}" if name in found else "")
        for name, value in metrics.values.items()
    }


def metric_lines(report: TaskReport) -> list[str]:
    """For the terminal: the metrics alone."""
    count = report.num_without_gold
    without = [f"  {count:,} rows without gold are left out"] if count else []
    if not report.num_rows:
        return [f"{report.name}: no row has gold, nothing to measure", *without]
    formatted = {name + report.about(name): both for name, both in format_metrics(report.metrics).items()}
    width = max(map(len, formatted))
    metrics = [f"  {name:{width}}  {value}  {interval}".rstrip() for name, (value, interval) in formatted.items()]
    head = f"{report.name}: {report.num_rows:,} rows measured"
    return [head, *without, *metrics, f"  ({format_intervals(report.metrics)})"]


def terminal_lines(report: TaskReport) -> list[str]:
    """Metrics, a small confusion table, scores of labels, the worst mistakes."""
    lines = metric_lines(report)
    if not report.num_rows:
        return lines
    lines += _tables(report)
    if report.history is not None and len(measured := report.history.held_out(report.main)) > 1:
        chart = Chart(figure_name(report.main), "steps", [Line("held out", measured, "o")])
        lines += ["", *draw_text(chart, COLUMNS - 12, CURVE_ROWS)]
    shown = report.mistakes.worst[:MISTAKES]
    if shown:
        lines += ["", f"the worst {len(shown)} of {report.mistakes.num_wrong:,} rows with errors"]
    for mistake in shown:
        lines.append("  " + shortened(mistake.where, COLUMNS - 2))
        texts = {**mistake.texts, "gold": mistake.gold, "predicted": mistake.predicted}
        lines += ["    " + shortened(f"{role}: {text}", COLUMNS - 4) for role, text in texts.items()]
    return lines


def _tables(report: TaskReport) -> Iterator[str]:
    for table in report.confusions[:TABLES]:
        yield from ["", *(_matrix(table) if table.num_labels <= CONFUSED else _confused_pairs(table))]
    for what, scores in list(report.label_scores.items())[:TABLES]:
        yield from ("", f"{padded(what, LABEL + 2)}" + "".join(f"{name:>{CELL}}" for name in (*FIGURES, "support")))
        shown = most_supported(scores, SCORED)
        for label in shown:
            figures = "".join(f"{scores[label][name]:{CELL}.4f}" for name in FIGURES)
            yield f"  {padded(label or what, LABEL)}{figures}{scores[label]['support']:{CELL},.0f}"
        if len(shown) < len(scores):
            yield f"  {len(scores) - len(shown):,} rarer ones are in the HTML report"
    hidden = max(len(report.confusions), len(report.label_scores)) - TABLES
    if hidden > 0:
        yield f"{hidden:,} more tables are in the HTML report"


def _matrix(table: ConfusionTable) -> Iterator[str]:
    yield f"{table.what}: gold in rows, predicted in columns"
    yield "  " + " " * LABEL + "".join(" " + padded(label, CELL - 1, right=True) for label in table.labels)
    for label, row in zip(table.labels, table.counts.tolist(), strict=True):
        yield f"  {padded(label, LABEL)}" + "".join(f"{count:{CELL},}" for count in row)


def _confused_pairs(table: ConfusionTable) -> Iterator[str]:
    """Many labels have no room side by side, and most of their cells would be empty."""
    shown = table.confused[:CONFUSED_PAIRS]
    yield f"{table.what}: {table.num_labels:,} labels, {table.num_wrong:,} mistakes" + (
        f"; the {len(shown)} most frequent" if len(shown) < len(table.confused) else ""
    )
    if shown:
        yield f"  {padded('gold', PAIR)}  {padded('predicted', PAIR)}  {'count':>{CELL}}"
    for gold, predicted, count in shown:
        yield f"  {padded(gold, PAIR)}  {padded(predicted, PAIR)}  {count:{CELL},}"
