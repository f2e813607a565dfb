"""A task report as one HTML page: a `TaskReport` enters, text leaves that needs nothing from outside."""

from collections.abc import Sequence
from html import escape

from bertie.inspection.chart import Chart, Line
from bertie.inspection.page import fact_cards, page, section, table
from bertie.inspection.run_charts import run_charts
from bertie.inspection.svg_chart import draw_svg
from bertie.inspection.task_mistakes import Mistake
from bertie.inspection.task_report import (
    FIGURES,
    ConfusionTable,
    Scores,
    TaskReport,
    intervals_told,
    metric_told,
    most_supported,
    spoken,
)
from bertie.train.history import RunHistory

SHOWN_LABELS = 200  # with scores of their own
CURVES = 5  # metrics that are drawn beside the one that decides
SHOWN_TABLES = 30
RIGHT, WRONG = "--c2", "--c1"  # colours of page.html
PADDED = "padding: .3rem .6rem"  # cells that have a colour


def task_page(report: TaskReport, further: Sequence[str] = ()) -> str:
    """`further` parts, such as curves, stand behind the metrics."""
    parts = [_facts(report), section("Metrics", _metrics(report)), *further]
    parts += _confusions(report)
    parts += [section(f"Scores by {what}", _scores(what, scores)) for what, scores in report.label_scores.items()]
    if report.history is not None:
        parts += _curves(report, report.history)
    if report.data:
        parts.append(section("Data", f'<div class="scroll"><pre>{escape(chr(10).join(report.data))}</pre></div>'))
    parts.append(section("Worst mistakes", _mistakes(report)))
    return page(f"Task report: {report.name}", parts)


def _facts(report: TaskReport) -> str:
    facts = {"task": report.task, "rows": f"{report.num_rows:,}"}
    if report.main in report.metrics.values:
        value, interval = metric_told(report.metrics, report.main)
        facts |= {spoken(report.main): value, "95% interval": interval or "–"}
    if report.num_without_gold:
        facts["without gold, left out"] = f"{report.num_without_gold:,}"
    return fact_cards(facts)


def _metrics(report: TaskReport) -> str:
    if not report.metrics.values:
        return _note("no row with gold, nothing to measure")
    rows = [(spoken(name), *metric_told(report.metrics, name)) for name in report.metrics.values]
    return table(("metric", "value", "95% interval"), rows) + _note(intervals_told(report.metrics))


def _curves(report: TaskReport, history: RunHistory) -> list[str]:
    """The loss, the metric that decides, and the others over each other."""
    others = [name for name in report.metrics.values if name != report.main and history.held_out(name)][:CURVES]
    lines = [Line("training", history.trained(report.main), "·", dense=True)] if history.trained(report.main) else []
    charts = [
        *run_charts([history], ["loss"]),
        Chart(spoken(report.main), "steps", [*lines, Line("held out", history.held_out(report.main), "o")]),
        Chart("other metrics, held out", "steps", [Line(spoken(name), history.held_out(name), "o") for name in others]),
    ]
    return [section(f"Learning curve: {chart.title}", draw_svg(chart)) for chart in charts if not chart.is_empty]


def _confusions(report: TaskReport) -> list[str]:
    shown = report.confusions[:SHOWN_TABLES]
    hidden = len(report.confusions) - len(shown)
    note = [_note(f"{hidden:,} more tables of confusion are not shown")] if hidden else []
    return [*(section(f"Confusion: {one.what}", _confusion(one)) for one in shown), *note]


def _confusion(found: ConfusionTable) -> str:
    """The darker a cell, the more of its gold label's row it holds: green where it is right."""
    head = "".join(f'<th style="{PADDED}">{escape(label)}</th>' for label in found.labels)
    rows = []
    for number, (label, counts) in enumerate(zip(found.labels, found.counts.tolist(), strict=True)):
        total = max(1, sum(counts))
        cells = [
            _cell(count, count / total, RIGHT if column == number else WRONG) for column, count in enumerate(counts)
        ]
        rows.append(f"<tr><th>{escape(label)}</th>{''.join(cells)}</tr>")
    drawn = f'<div class="scroll"><table><tr><th>gold \\ told</th>{head}</tr>{"".join(rows)}</table></div>'
    return drawn + (_note(found.note) if found.note else "")


def _cell(count: int, share: float, colour: str) -> str:
    if not count:
        return f'<td style="{PADDED}">·</td>'
    mixed = f"color-mix(in srgb, var({colour}) {8 + share * 52:.0f}%, transparent)"
    return f'<td style="{PADDED}; background: {mixed}" title="{share:.1%} of the row">{count:,}</td>'


def _scores(what: str, scores: Scores) -> str:
    shown = most_supported(scores, SHOWN_LABELS)
    rows = [
        (label or what, *(f"{scores[label][name]:.4f}" for name in FIGURES), f"{scores[label]['support']:,.0f}")
        for label in shown
    ]
    hidden = len(scores) - len(shown)
    return table((what, *FIGURES, "support"), rows) + (_note(f"{hidden:,} rarer ones are not shown") if hidden else "")


def _mistakes(report: TaskReport) -> str:
    shown, wrong = report.mistakes.worst, report.mistakes.num_wrong
    if not shown:
        return _note("none")
    note = f"The worst {len(shown):,} of {wrong:,} rows that are not wholly right." if len(shown) < wrong else ""
    return (_note(note) if note else "") + "".join(map(_mistake, shown))


def _mistake(mistake: Mistake) -> str:
    single = len(mistake.texts) == 1
    texts = "".join(
        f'<div dir="auto">{"" if single else _name(role)}{escape(text)}</div>' for role, text in mistake.texts.items()
    )
    said = "".join(
        f'<div dir="auto">{_name(name)}<strong>{escape(words)}</strong></div>'
        for name, words in (("gold", mistake.gold), ("told", mistake.told))
    )
    return f"<blockquote><cite>{escape(mistake.where)}</cite>{texts}{said}</blockquote>"


def _name(name: str) -> str:
    return f"<small>{escape(name)}</small> "


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'
