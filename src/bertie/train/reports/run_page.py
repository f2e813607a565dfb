"""Turns the history of one run, or of several, into an HTML page."""

from collections.abc import Sequence

from markupsafe import Markup

from bertie.reporting.page import fact_cards, note, page, section, table
from bertie.reporting.quantities import format_duration
from bertie.reporting.svg_chart import draw_svg
from bertie.train.folder.history import SHARES, Axis, RunHistory, figure_names
from bertie.train.reports.run_charts import all_figures, figure_name, run_charts
from bertie.train.reports.run_comparison import Comparison, compare_runs, flattened

SHOWN_EVALUATIONS = 100


def run_page(run: RunHistory, against: Axis = "steps") -> str:
    parts = [_facts(run), *_charts([run], against)]
    if run.evaluations:
        parts.append(section("On held-out text", _evaluations(run)))
    options = [(name, str(value)) for name, value in flattened(run.resolved).items()]
    return page(f"Run {run.name}", [*parts, section("Options", table(("option", "value"), options))])


def comparison_page(runs: Sequence[RunHistory], against: Axis = "steps") -> str:
    found = compare_runs(runs)
    figures = table(("", *found.names), _rows(found.figures))
    parts = [section("Figures", figures + Markup("").join(map(note, found.notes)))]
    parts.append(section("Options that differ", _options(found)))
    return page(f"Runs {', '.join(found.names)}", [*parts, *_charts(runs, against)])


def _facts(run: RunHistory) -> Markup:
    last = run.last
    facts = {
        "steps": f"{last['step']:,}" + (f" of {run.num_steps:,}" if run.num_steps else ""),
        "tokens": f"{last['tokens']:,}",
        "training time": format_duration(last["seconds"]),
        "tokens/s": "–" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}",
        "state": "finished" if run.finished else f"{run.progress:.0%} done",
        "resumed": f"{run.num_resumed:,} times" if run.num_resumed else "never",
    }
    return fact_cards(facts)


def _charts(runs: Sequence[RunHistory], against: Axis) -> list[Markup]:
    charts = run_charts(runs, all_figures(runs), against)
    return [section(chart.title[:1].upper() + chart.title[1:], draw_svg(chart)) for chart in charts]


def _evaluations(run: RunHistory) -> Markup:
    names = figure_names(run.evaluations)
    shown = run.evaluations[-SHOWN_EVALUATIONS:]
    rows = [
        (
            f"{one['step']:,}",
            f"{one['tokens']:,}",
            format_duration(one["seconds"]),
            *(_cell(name, one.get(name)) for name in names),
        )
        for one in shown
    ]
    left_out = f"The last {len(shown)} of {len(run.evaluations)}." if len(rows) < len(run.evaluations) else ""
    return table(("step", "tokens", "time", *(figure_name(name, [run]) for name in names)), rows) + note(left_out)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2%}" if name.endswith(SHARES) else f"{value:,.4f}"


def _options(found: Comparison) -> Markup:
    if not found.options:
        return note("none")
    return table(("option", *found.names), _rows(found.options))


def _rows(named: dict[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [(name, *values) for name, values in named.items()]
