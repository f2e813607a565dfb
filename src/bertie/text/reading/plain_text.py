"""Removes typographic quotes, accents and capitals from a text, and keeps where each character came from."""

import unicodedata
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PlainText:
    """A prepared text. `starts` and `ends` are None where every character kept its place."""

    text: str
    starts: np.ndarray | None = None  # [n] the original character that each one comes from
    ends: np.ndarray | None = None  # [n] and the one after it

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """The characters of the original text that lie behind begin:end of the prepared one."""
        if self.starts is None or self.ends is None:
            return begin, end
        if begin >= len(self.starts):
            last = int(self.ends[-1]) if len(self.ends) else 0
            return last, last
        start = int(self.starts[begin])
        return start, (int(self.ends[end - 1]) if end > begin else start)


def prepare(text: str, lowercase: bool, strip_accents: bool, align: bool = True) -> PlainText:
    """Write `` and '' as a double quote, all white space as spaces, drop accents, and lower the case, as chosen."""
    if text.isascii() and "``" not in text and "''" not in text:
        for space in "\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f":
            text = text.replace(space, " ")
        return PlainText(text.lower() if lowercase else text)
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    index = 0
    while index < len(text):
        width = 2 if text.startswith(("``", "''"), index) else 1
        plain = '"' if width == 2 else plain_character(text[index], lowercase, strip_accents)
        characters.append(plain)
        if align:
            starts.extend([index] * len(plain))
            ends.extend([index + width] * len(plain))
        index += width
    whole = "".join(characters)
    if not align:
        return PlainText(whole)
    return PlainText(whole, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))


def plain_character(character: str, lowercase: bool, strip_accents: bool) -> str:
    if character.isspace():
        return " "
    if strip_accents and not character.isascii():
        decomposed = unicodedata.normalize("NFKD", character)
        character = "".join(part for part in decomposed if not unicodedata.combining(part))
    # Letter by letter: the form of a final sigma depends on its neighbours, and the vocabularies do not have it.
    return "".join(part.lower() for part in character) if lowercase else character
