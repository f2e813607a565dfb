"""Decides whether a table's first row is its header, by that row and a sample of the others, and names the columns."""

from collections import Counter
from collections.abc import Iterable, Sequence

LONGEST_NAME = 64
SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")
RARE = 0.01  # a number of cells that fewer rows of the sample have is a mistake in those rows


def why_no_header(first: Sequence[str], others: Iterable[Sequence[str]]) -> str | None:
    """Why the first row is data, as a part of a sentence; None where it may be a header."""
    # Programs leave the first name empty where they number the rows.
    names = first[1:] if len(first) > 1 and not first[0] else first
    if not all(name.strip() for name in names):
        return "one of its cells is empty"
    if len(set(names)) < len(names):
        return "two of its cells are alike"
    for name in names:
        if is_number(name):
            return f"{name!r} is a number"
        if len(name) > LONGEST_NAME:
            return f"it has a cell of {len(name)} characters"
        if name.endswith(SENTENCE_ENDS):
            return f"{shorten(name)!r} is a sentence"
    for cells in others:
        # An equal cell below it in the same column: a label, not a name.
        for name, cell in zip(first, cells, strict=False):
            if name and name == cell:
                return f"{name!r} is in another row too"
    return None


def header_names(first: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() or f"column{number}" for number, name in enumerate(first, 1))


def numbered_names(num_columns: int) -> tuple[str, ...]:
    return tuple(f"column{number}" for number in range(1, num_columns + 1))


def usual_widths(widths: Iterable[int]) -> tuple[int, int]:
    """The smallest and the greatest number of cells that is no mistake. Without a header, rows may differ at their end:
    some have the source of a text, others do not."""
    counts = Counter(widths)
    usual = [width for width, count in counts.items() if count > 1 and count >= RARE * counts.total()]
    usual = usual or [width for width, _ in counts.most_common(1)]
    return min(usual, default=0), max(usual, default=0)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return any(character.isdigit() for character in cell)  # "nan" and "inf" are words


def shorten(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
