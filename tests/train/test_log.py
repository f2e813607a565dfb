"""The log and the curve: a line that was cut short costs itself alone."""

from pathlib import Path

from bertie.train.curve import draw
from bertie.train.log import FILE, Log, last_of_each_step, read_log


def test_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.write({"event": "step", "step": 1, "loss": 3.0})
    with (tmp_path / FILE).open("a") as file:
        file.write('{"event": "step", "st')
    with Log(tmp_path) as log:
        log.write({"event": "step", "step": 1, "loss": 2.0})
        log.write({"event": "saved", "step": 1})
    assert [record.get("loss") for record in read_log(tmp_path)] == [3.0, 2.0, None]
    assert last_of_each_step(tmp_path, "step") == [{"event": "step", "step": 1, "loss": 2.0}]


def test_without_a_log_there_are_no_records(tmp_path: Path) -> None:
    assert list(read_log(tmp_path)) == []


def test_a_falling_curve_falls() -> None:
    lines = draw({"x": [(step, 10.0 - step) for step in range(10)]}, width=10, height=10)
    assert [line.index("x") - line.index("|") - 1 for line in lines[:10]] == list(range(10))
    assert lines[0].startswith("   10.000 |") and lines[9].startswith("    1.000 |")
    assert lines[-1].split() == ["0", "9"]


def test_curves_of_one_point_of_none_and_of_nonsense() -> None:
    assert draw({"x": []}) == ["nothing to draw yet"]
    assert "x" in draw({"x": [(5, 1.0)]})[0]
    assert "x" in draw({"x": [(1, 1.0), (2, float("nan"))]})[0]
    assert draw({"x": [(1, 1.0)]}, level=2.0)[0].endswith("-" * 72)
