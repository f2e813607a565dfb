"""HTML pages that stand alone: a title and parts enter, text leaves that needs nothing from outside.

Colours follow the reader's light or dark setting.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template


def page(title: str, parts: Iterable[str]) -> str:
    """The parts are HTML already, the title is text."""
    template = Template(files("bertie.inspection").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), body="\n".join(parts))


def section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def fact_cards(facts: Mapping[str, str]) -> str:
    """The figures at the head of a page."""
    cards = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{cards}</dl>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'
