"""Results become a table and charts."""

from pathlib import Path
from typing import Any

import pytest
from experiments.experiment import Column, Curves, Experiment
from experiments.report import charts, origin, rows_of, table, tell, write_report

from bertie.errors import CapabilityError

COLUMNS = (Column("loss", "loss", ".2f"), Column("accuracy", "accuracy", ".1%"))


def result(cell: str, code: str = "abc", **figures: float) -> dict[str, Any]:
    made = {"cell": cell, "machine": "two cores", "code": code}
    return {"figures": figures, "curves": {"loss": [[0, 9.0], [1, figures.get("loss", 1.0)]]}, "made": made}


ROWS = {
    "base": [result("base, seed 1", loss=2.0, accuracy=0.5), result("base, seed 2", loss=4.0, accuracy=0.5)],
    "no NSP": [result("no NSP, seed 1", loss=3.0)],
}


def test_means_and_deviations_over_seeds() -> None:
    assert table(COLUMNS, ROWS) == [
        "|  | loss | accuracy | seeds |",
        "|---|---|---|---|",
        "| base | 3.00 ± 1.41 | 50.0% ± 0.0% | 2 |",
        "| no NSP | 3.00 | - | 1 |",
    ]


def test_a_figure_that_some_seeds_lack() -> None:
    assert (tell([None, 2.0], ".1f"), tell([], ".1f"), tell([1.0, 2.0, 3.0], ".1f")) == ("2.0", "-", "2.0 ± 1.0")


def test_seeds_that_were_measured_at_the_same_places_are_one_line() -> None:
    (chart,) = charts([Curves("loss", "held-out loss", "minutes"), Curves("none", "nothing", "minutes")], ROWS)
    assert [line.name for line in chart.lines] == ["base", "no NSP"]
    assert chart.lines[0].points == [(0, 9.0), (1, 3.0)]


def test_seeds_that_were_not_are_a_line_each() -> None:
    later = {**ROWS["base"][1], "curves": {"loss": [[0, 9.0], [2, 4.0]]}}
    (chart,) = charts([Curves("loss", "held-out loss", "minutes")], {**ROWS, "base": [ROWS["base"][0], later]})
    assert [line.name for line in chart.lines] == ["base (seed 1)", "base (seed 2)", "no NSP"]
    assert chart.lines[1].points == [(0, 9.0), (2, 4.0)]


def test_the_report_is_written(tmp_path: Path) -> None:
    experiment = Experiment("some minutes each", lambda setting: (), COLUMNS, conclude=lambda rows: ["All is well."])
    (written,) = write_report("ablations", experiment, ROWS, tmp_path)
    text = written.read_text()
    assert "| no NSP | 3.00 | - | 1 |" in text
    assert "- All is well.\n- Machine: two cores.\n" in text
    assert "versions of the code" not in text


def test_rows_of_other_code_are_told(tmp_path: Path) -> None:
    rows = {"base": [result("base", loss=1.0), result("base", code="def", loss=1.0)]}
    (written,) = write_report("x", Experiment("", lambda setting: (), COLUMNS), rows, tmp_path)
    assert "made by 2 versions of the code" in written.read_text()


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    experiment = Experiment("", lambda setting: (), COLUMNS, charts=(Curves("loss", "loss", "minutes"),))
    try:
        text, picture = write_report("x", experiment, ROWS, tmp_path)
    except CapabilityError as error:
        pytest.skip(str(error))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "![x](x.png)" in text.read_text()


def test_only_what_is_there_has_a_row(make_cell: Any) -> None:
    cells = [make_cell("base", 1, seed=1), make_cell("other", 2, seed=1)]
    assert rows_of(cells, {cells[0].digest: ROWS["base"][0]}) == {"base": ROWS["base"][:1]}


def test_cells_of_one_name_and_seed_are_one_row(make_cell: Any) -> None:
    cells = [make_cell("base", number, seed=seed) for number, seed in ((1, 1), (2, 1), (3, 2))]
    results = [result("base: a", loss=1.0), result("base: b", code="def", accuracy=0.5), result("base: a", loss=3.0)]
    results[1]["examples"] = {"a_set": [[1.0]]}
    rows = rows_of(cells, {cell.digest: found for cell, found in zip(cells, results, strict=True)})
    assert table(COLUMNS, rows)[2:] == ["| base | 2.00 ± 1.41 | 50.0% | 2 |"]
    assert rows["base"][0]["examples"] == {"a_set": [[1.0]]}
    assert "The rows were made by 2 versions of the code." in origin(rows)
