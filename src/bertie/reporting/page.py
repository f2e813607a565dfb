"""Renders HTML pages that stand alone: one file, nothing from outside, colours by the reader's light or dark setting.

The templates escape every text. What the functions here return is `Markup`, which is HTML already; join such parts
with +. A page is `page("Title", [fact_cards({...}), section("Lengths", bars(...)), ...])`, or a template of its own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

TEMPLATES = Environment(
    loader=PackageLoader("bertie.reporting"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
TEMPLATES.tests["wordy"] = re.compile(r"[^\W\d_]{2}").search  # of a unit there may be one letter
JOINTS = re.compile(r"(?<=\w[_/])(?=\w)|(?<=[^\W\d]\.)(?=\w)")  # of paths and names, but not of numbers


def breakable(text: object) -> Markup:
    """The text as HTML in which a line may end inside a long name, but only after a dot, an underscore or a slash."""
    return escape(text) if hasattr(text, "__html__") else Markup("<wbr>").join(JOINTS.split(str(text)))


TEMPLATES.filters["breakable"] = breakable


def page(title: str, parts: Iterable[str]) -> str:
    """The parts are HTML already, the title is text."""
    return TEMPLATES.get_template("page.html").render(title=title, parts=[Markup(part) for part in parts])


def fragment(macro: str, *arguments: Any) -> Markup:
    """A macro of sections.html with its arguments."""
    return Markup(getattr(TEMPLATES.get_template("sections.html").module, macro)(*arguments))


def section(title: str, content: str) -> Markup:
    """The content is HTML already, the title is text."""
    return fragment("section", title, Markup(content))


def fact_cards(facts: Mapping[str, str]) -> Markup:
    """The figures at the head of a page."""
    return fragment("fact_cards", facts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Numbers are at the right; the first column and those of words are at the left."""
    return fragment("table", head, list(rows))


def note(text: str) -> Markup:
    """A remark in a fainter colour; nothing where there is no text."""
    return fragment("note", text)


def paragraph(text: str) -> Markup:
    return fragment("paragraph", text)


def preformatted(lines: Iterable[str]) -> Markup:
    return fragment("preformatted", "\n".join(lines))


def quote(text: str, source: str = "") -> Markup:
    return fragment("quote", text, source)


def bars(rows: Iterable[tuple[str, float, str]]) -> Markup:
    """A drawing of bars, each with a label, a size and the words behind it."""
    return fragment("bars", list(rows))


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    """`counts[g][p]` rows have the gold label g and the predicted label p."""
    return fragment("confusion", labels, counts)


def mistake(where: str, texts: Mapping[str, str], gold: str, predicted: str) -> Markup:
    """A row that was answered wrongly. `texts` has its texts by role."""
    return fragment("mistake", where, texts, gold, predicted)
