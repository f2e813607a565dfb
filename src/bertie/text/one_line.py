"""Shortens text to one line of a terminal, in columns: an ideograph takes two."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

SHORTENED = "…"


def one_line(text: str) -> str:
    """White space becomes single spaces, and so does what would move the cursor or change its colour."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def shortened(text: str, columns: int) -> str:
    """Whole, or its beginning and a mark."""
    line = one_line(text)
    return line if cell_len(line) <= columns else set_cell_size(line, columns - 1).rstrip() + SHORTENED


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Exactly as wide, the text at the left or at the right."""
    line = shortened(text, columns)
    space = " " * (columns - cell_len(line))
    return space + line if right else line + space


def listed(parts: Sequence[str], columns: int) -> str:
    """As many parts as have room, the first one shortened where it must be, and how many there are beside them."""
    for num_shown in range(min(len(parts), columns), 1, -1):  # more have no room
        more = f" and {len(parts) - num_shown:,} more" if num_shown < len(parts) else ""
        line = one_line(", ".join(parts[:num_shown])) + more
        if cell_len(line) <= columns:
            return line
    if not parts:
        return ""
    more = f" and {len(parts) - 1:,} more" if len(parts) > 1 else ""
    return shortened(parts[0], columns - len(more)) + more
