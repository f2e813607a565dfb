"""HTML pages: texts are escaped, parts are not escaped twice, columns of words are at the left."""

import re

from markupsafe import Markup

from bertie.reporting.chart import Chart, Line
from bertie.reporting.page import (
    bars,
    breakable,
    confusion,
    fact_cards,
    mistake,
    note,
    page,
    paragraph,
    preformatted,
    quote,
    section,
    table,
)
from bertie.reporting.svg_chart import draw_svg

SHARP = "<b> & \"c\" 'd'"
ESCAPED = "&lt;b&gt; &amp; &#34;c&#34; &#39;d&#39;"


def test_every_text_is_escaped_once() -> None:
    chart = Chart(SHARP, SHARP, [Line(SHARP, [(0.0, 1.0), (1.0, 2.0)], "o")])
    parts = [
        *(fact_cards({SHARP: SHARP}), table([SHARP], [[SHARP]]), note(SHARP), paragraph(SHARP), preformatted([SHARP])),
        *(quote(SHARP, SHARP), bars([(SHARP, 1.0, SHARP)]), confusion([SHARP], [[3]]), draw_svg(chart)),
        mistake(SHARP, {SHARP: SHARP}, SHARP, SHARP),
    ]
    for part in parts:
        assert isinstance(part, Markup) and ESCAPED in part and "<b>" not in part and "amp;lt" not in part
        assert section("title", part).count(part) == 1
        assert page("title", [part]).count(part) == 1
    assert page(SHARP, []).count(ESCAPED) == 2
    assert ESCAPED in section(SHARP, "")


def test_columns_of_words_are_at_the_left() -> None:
    assert table(["name", "count", "text"], [["one", "1", "ab"], ["two", "2 s", ""]]) == (
        '<div class="scroll"><table><tr><th>name</th><th>count</th><th class="words">text</th></tr>'
        '<tr><td>one</td><td>1</td><td class="words">ab</td></tr>'
        '<tr><td>two</td><td>2 s</td><td class="words"></td></tr></table></div>'
    )


def test_long_names_may_break_at_their_joints_only() -> None:
    assert breakable("os.path.expand_user") == "os.<wbr>path.<wbr>expand_<wbr>user"
    assert breakable("runs/my-run/model") == "runs/<wbr>my-run/<wbr>model"
    for whole in ("0.7067", "1,234.5", "0.67 to 0.74", "done.", "_private", "x_", "好评。"):
        assert breakable(whole) == whole
    assert breakable("<b>.x_y") == "&lt;b&gt;.x_<wbr>y"
    assert breakable(Markup("<i>a.b</i>")) == "<i>a.b</i>", "HTML stays as it is"
    assert "a_<wbr>b" in table(["n"], [["a_b"]]) and "a_<wbr>b" in fact_cards({"n": "a_b"})
    assert "anywhere" not in re.sub(r"(blockquote|h1|pre|\.details dd) \{[^}]*\}", "", page("x", []))


def test_a_wide_confusion_scrolls_in_its_box_beside_its_gold_labels() -> None:
    wide = confusion(["card_arrival", "pin"], [[1, 0], [0, 1]])
    assert wide.startswith('<div class="scroll"><table class="confusion">')
    assert '<th class="turned"><span>card_<wbr>arrival</span></th>' in wide and "turned" not in confusion(["a"], [[1]])
    assert re.search(r"\.confusion th:first-child \{ position: sticky; left: 0;", page("x", []))


def test_nothing_to_show() -> None:
    assert note("") == "" and "nothing to show" in bars([])
    assert "<cite>" not in quote("text")


def test_bars_are_drawn_against_the_longest() -> None:
    drawn = bars([("a", 10.0, "ten"), ("b", 5.0, "five"), ("c", 0.0, "none"), ("d", 0.001, "little")])
    assert [width in drawn for width in ('width="360.0"', 'width="180.0"', 'width="0.0"', 'width="1.0"')] == [True] * 4
    assert 'viewBox="0 0 640 88"' in drawn


def test_a_confusion_is_coloured_by_share_and_rightness() -> None:
    drawn = confusion(["a", "b"], [[3, 1], [0, 1000]])
    assert "<th>gold / predicted</th>" in drawn
    assert 'var(--c2) 47%, transparent)" title="gold a, predicted a: 75.0% of the row">3</td>' in drawn
    assert 'var(--c1) 21%, transparent)" title="gold a, predicted b: 25.0% of the row">1</td>' in drawn
    assert ">·</td>" in drawn and ">1,000</td>" in drawn


def test_roles_are_named_where_there_are_several() -> None:
    assert "<small>text</small>" not in mistake("a:1", {"text": "x"}, "yes", "no")
    assert "<small>first</small> x" in mistake("a:1", {"first": "x", "second": "y"}, "yes", "no")
