"""Charts: what is drawn is where the numbers say, in text and in SVG; PNG is a picture."""

import re
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from bertie.disk import MARK, MARKED
from bertie.errors import CapabilityError
from bertie.reporting.chart import Chart, Line, smoothed, thinned, ticks
from bertie.reporting.png_chart import draw_png
from bertie.reporting.svg_chart import draw_svg
from bertie.reporting.text_chart import draw_text

FALLING = Line("falling", [(step, 10.0 - step) for step in range(10)], "x")


def test_a_falling_curve_falls() -> None:
    title, *lines = draw_text(Chart("loss", "steps", [FALLING]), width=10, height=10)
    assert title == "loss   x falling"
    assert [line.index("x") - line.index("|") - 1 for line in lines[:10]] == list(range(10))
    assert lines[0].startswith("       10 |") and lines[9].startswith("        1 |")
    assert lines[-1].split() == ["0", "9", "steps"]


def test_a_level_and_a_percentage() -> None:
    chart = Chart("accuracy", "steps", [Line("a", [(1, 0.5)], "a")], {"chance": 0.25}, percent=True)
    lines = draw_text(chart, width=20, height=5)
    assert lines[0].endswith("-- chance 25.0%")
    assert lines[5] == "    25.0% |" + "-" * 20
    assert lines[1] == "    50.0% |" + " " * 19 + "a"


def test_curves_of_one_point_and_of_none() -> None:
    assert draw_text(Chart("loss", "steps", [Line("a", [], "a")])) == ["loss: nothing to draw yet"]
    assert any("a" in line for line in draw_text(Chart("loss", "steps", [Line("a", [(0, 0.0)], "a")]))[1:])
    assert "nothing to draw" in draw_svg(Chart("loss", "steps", [Line("a", [], "a")]))


def test_svg_is_well_formed_and_inside_its_frame() -> None:
    chart = Chart("<loss>", "steps & more", [FALLING, Line("<b>", [(0, 3.0)], "b")], {"level": 4.0})
    root = ElementTree.fromstring(f"<div>{draw_svg(chart)}</div>")
    svg = root.find("svg")
    assert svg is not None
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    circles = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in svg.iter("circle")]
    assert len(circles) == 11
    assert all(0 < x < width and 0 < y < height for x, y in circles)
    assert [y for _, y in circles[:10]] == sorted(y for _, y in circles[:10]), "lower numbers are further down"
    assert [item.text for item in root.iter("li")] == ["falling", "<b>", "level 4"]


def test_a_dense_line_is_thinned_and_has_no_marks() -> None:
    many = Line("many", [(step, float(step % 2)) for step in range(10_000)], "m", dense=True)
    drawn = draw_svg(Chart("loss", "steps", [many]))
    assert "<circle" not in drawn
    raw, course = re.search(r'class="line raw c0" d="([^"]+)"', drawn), re.search(r'class="line c0" d="([^"]+)"', drawn)
    assert raw is not None and course is not None
    assert raw[1].count("L") < 500 and course[1].count("L") < 500
    assert drawn.count(">many</li>") == 1 and ">faint: before smoothing</li>" in drawn
    means = thinned(many.points, 100)
    assert len(means) == 100 and all(y == pytest.approx(0.5, abs=0.02) for _, y in means)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.9, 10.7), (0, 44_359), (0.0671, 0.0672), (-3.0, 2.0)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)
    assert len({round(after - before, 9) for before, after in pairwise(found)}) == 1


def test_a_picture_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    charts = [Chart("loss", "steps", [FALLING], {"level": 4.0}), Chart("none", "steps", [Line("a", [], "a")])]
    picture = draw_png([*charts, Chart("accuracy", "steps", [FALLING], percent=True)], "three")
    assert picture.startswith(b"\x89PNG") and MARK in picture[:MARKED]


def test_many_names_have_room_below_the_lines() -> None:
    pytest.importorskip("matplotlib")
    heights = []
    for count in (3, 4, 6):
        lines = [Line(f"number {number}", FALLING.points, "o") for number in range(count)]
        picture = draw_png([Chart("loss", "steps", lines)])
        heights.append(int.from_bytes(picture[20:24], "big"))  # as the header says
    assert heights[0] < heights[1] < heights[2]


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CapabilityError, match=r"pip install 'bertie\[plots\]'"):
        draw_png([Chart("loss", "steps", [FALLING])])


def test_a_smoothed_line_is_the_mean_of_neighbours() -> None:
    noisy = [(step, float(step % 2)) for step in range(150)]
    course = smoothed(noisy)
    assert [x for x, _ in course] == [x for x, _ in noisy]
    # Five on each side; fewer at the ends, where there are no more.
    assert course[75][1] == pytest.approx(sum(y for _, y in noisy[70:81]) / 11)
    assert course[0][1] == pytest.approx(3 / 6) and course[-1][1] == pytest.approx(3 / 6)
    assert max(y for _, y in course) - min(y for _, y in course) < 0.2
    constant = [(step, 4.0) for step in range(100)]
    assert smoothed(constant) == constant


def test_a_short_line_is_drawn_as_it_is() -> None:
    few = [(step, float(step)) for step in range(12)]
    assert smoothed(few) is few
    drawn = draw_svg(Chart("loss", "steps", [Line("few", few, "f", dense=True)]))
    assert "raw" not in drawn and drawn.count('class="line c0"') == 1 and "<circle" not in drawn
