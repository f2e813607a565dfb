"""HTML pages that stand alone: a title and parts enter, text leaves that needs nothing from outside.

Colours follow the reader's light or dark setting.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

_WORD = re.compile(r"[^\W\d_]{2}")  # of a unit there may be one letter


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
    """The first column and those of words stand at the left, numbers at the right."""
    rows = list(rows)
    wordy = [any(_WORD.search(row[place]) for row in rows) for place in range(len(head))]

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = (' class="words"' if is_wordy and place else "" for place, is_wordy in enumerate(wordy))
        return "".join(f"<{tag}{mark}>{escape(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{line("th", head)}</tr>{body}</table></div>'
