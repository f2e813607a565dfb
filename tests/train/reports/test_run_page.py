"""Pages, charts and tables of runs: alone, and beside each other."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.train.folder.history import read_history
from bertie.train.reports.run_charts import all_figures, main_figures, run_charts
from bertie.train.reports.run_comparison import compare_runs, seconds_to_reach
from bertie.train.reports.run_page import comparison_page, run_page

Make = Callable[..., Path]


def test_one_run_beside_its_held_out_text(fake_run: Make) -> None:
    run = read_history(fake_run("a"))
    figures = main_figures([run])
    assert figures == ["masked_lm", "masked_lm_accuracy", "tokens_per_second"]
    loss, accuracy, speed = run_charts([run], figures, "time")
    assert (loss.across, loss.levels) == ("seconds", {"by frequency": 7.5})
    assert [(line.name, len(line.points)) for line in loss.lines] == [("training", 10), ("held out", 2)]
    assert accuracy.percent and accuracy.levels == {}
    assert [line.name for line in speed.lines] == ["training"] and speed.from_zero


@pytest.mark.parametrize(
    ("seconds", "unit", "last"), [(90.0, "seconds", 90.0), (600.0, "minutes", 10.0), (9000.0, "hours", 2.5)]
)
def test_time_is_told_in_a_fitting_unit(fake_run: Make, seconds: float, unit: str, last: float) -> None:
    record = {"event": "step", "step": 1, "tokens": 5, "seconds": seconds, "loss": 1.0, "tokens_per_second": 1.0}
    (chart,) = run_charts([read_history(fake_run("a", records=[record]))], ["loss"], "time")
    assert (chart.across, chart.lines[0].points) == (unit, [(last, 1.0)])


def test_a_loss_of_one_part_is_drawn_once(fake_run: Make) -> None:
    assert all_figures([read_history(fake_run("a"))]) == ["masked_lm", "masked_lm_accuracy", "tokens_per_second"]


def test_what_sets_runs_apart(fake_run: Make) -> None:
    slow, fast = read_history(fake_run("slow")), read_history(fake_run("fast", rate=1e-2, slope=0.8))
    found = compare_runs([slow, fast])
    assert found.options == {"options.optimizer.rate": ("0.001", "0.01")}
    assert found.figures["masked lm loss, last"] == ("4.0000", "1.0000")
    assert found.figures["time to 4.0000"] == ("20 s", "20 s")
    assert found.notes == ()
    assert seconds_to_reach(fast, "masked_lm", 5.0) == 10.0
    assert seconds_to_reach(slow, "masked_lm", 3.9) is None


def test_runs_on_other_text_are_told_apart(fake_run: Make) -> None:
    runs = [fake_run("a"), fake_run("b")]
    file = runs[1] / "options.json"
    file.write_text(file.read_text().replace("c" * 64, "d" * 64))
    (note,) = compare_runs([read_history(run) for run in runs]).notes
    assert note == "not measured on the same text: corpus differs"


def test_the_pages_stand_alone(fake_run: Make) -> None:
    runs = [read_history(fake_run(name)) for name in ("<a>", "b", "c")]
    for page in (run_page(runs[0], "time"), comparison_page(runs, "tokens")):
        assert page.count("<svg") == page.count("</svg>") == 3
        assert not re.search(r"https?:|url\(|@import|<script", page)
        assert "<a>" not in page and "&lt;a&gt;" in page


def test_a_run_without_a_step_has_a_page(fake_run: Make) -> None:
    run = read_history(fake_run("a", records=[]))
    assert "0 of 10" in run_page(run)
    assert compare_runs([run, run]).figures["tokens/s"] == ("–", "–")
