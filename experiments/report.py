"""The report: results enter, a Markdown table and a picture leave, to be put into docs/log.md."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bertie.reporting.chart import Chart, Line
from bertie.reporting.png_chart import draw_png
from experiments.cell import Cell, Result
from experiments.experiment import Column, Curves, Experiment, Rows

SIGNS = "ox+*#%"


def rows_of(cells: Iterable[Cell], results: dict[str, Result]) -> Rows:
    """What is there; a configuration without any result has no row. Cells of one name and seed are one result."""
    rows: dict[str, dict[int | None, Result]] = {}
    for cell in cells:
        if cell.digest in results:
            seeds = rows.setdefault(cell.name, {})
            found = results[cell.digest]
            seeds[cell.seed] = joined(seeds[cell.seed], found) if cell.seed in seeds else found
    return {name: list(seeds.values()) for name, seeds in rows.items()}


def joined(first: Result, second: Result) -> Result:
    """The figures of both."""
    names = ("figures", "curves", "examples")
    both = {name: {**first.get(name, {}), **second.get(name, {})} for name in names}
    return {**first, **both, "makers": [*makers(first), *makers(second)]}


def makers(result: Result) -> list[Result]:
    """Of all cells that filled it."""
    found: list[Result] = result.get("makers", [result["made"]])
    return found


def table(columns: Sequence[Column], rows: Rows) -> list[str]:
    """Means over the seeds, with the deviation of the sample where there are several."""
    headings = ["", *(column.heading for column in columns), "seeds"]
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for name, results in rows.items():
        told = [tell([one["figures"].get(column.figure) for one in results], column.form) for column in columns]
        lines.append(f"| {' | '.join([name, *told, str(len(results))])} |")
    return lines


def tell(values: Sequence[float | None], form: str) -> str:
    """A dash where a configuration does not have the figure."""
    found = [value for value in values if value is not None]
    if not found:
        return "-"
    mean = format(statistics.fmean(found), form)
    return mean if len(found) < 2 else f"{mean} ± {format(statistics.stdev(found), form)}"


def charts(wanted: Sequence[Curves], rows: Rows) -> list[Chart]:
    drawn = []
    for curves in wanted:
        lines = [
            Line(title, points, SIGNS[number % len(SIGNS)])
            for number, (name, results) in enumerate(rows.items())
            for title, points in lines_of(name, [one for one in results if one["curves"].get(curves.curve)], curves)
        ]
        drawn.append(Chart(curves.title, curves.across, lines, percent=curves.percent))
    return [chart for chart in drawn if not chart.is_empty]


def lines_of(name: str, results: Sequence[Result], curves: Curves) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """The mean of seeds that were measured at the same places; else every seed is a line of its own."""
    found = [[(x, y) for x, y in result["curves"][curves.curve]] for result in results]
    if len({tuple(x for x, _ in points) for points in found}) == 1:
        yield name, [(places[0][0], statistics.fmean(y for _, y in places)) for places in zip(*found, strict=True)]
        return
    for result, points in zip(results, found, strict=True):
        seed = f" ({result['made']['cell'].rpartition(', ')[2]})" if len(results) > 1 else ""
        yield name + seed, points


def write_report(name: str, experiment: Experiment, rows: Rows, folder: Path) -> list[Path]:
    """`name`.md and, where there are curves, `name`.png."""
    folder.mkdir(parents=True, exist_ok=True)
    text, picture = folder / f"{name}.md", folder / f"{name}.png"
    lines = [f"**{name}**: {experiment.about}", "", *table(experiment.columns, rows), ""]
    lines += [f"- {sentence}" for sentence in (*experiment.conclude(rows), *origin(rows))]
    drawn = charts(experiment.charts, rows)
    if drawn:
        lines += ["", f"![{name}]({picture.name})"]
    text.write_text("\n".join(lines) + "\n", "utf-8")
    if drawn:
        picture.write_bytes(draw_png(drawn, title=name))
    return [text, *([picture] if drawn else [])]


def origin(rows: Rows) -> list[str]:
    """Which machine and which code; several of them are told, since such rows may not be compared."""
    made = [one for results in rows.values() for result in results for one in makers(result)]
    machines, codes = ({one[name] for one in made} for name in ("machine", "code"))
    told = [f"Machine: {'; '.join(sorted(machines))}."] if machines else []
    if len(codes) > 1:
        told.append(f"The rows were made by {len(codes)} versions of the code.")
    return told
