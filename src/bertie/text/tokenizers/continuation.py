"""Finds for each id of a vocabulary whether its piece continues the word of the piece before it."""

import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np

BYTE_SPACES = ("Ġ", "Ċ", "ĉ", "č")  # how byte-level pieces write space, line feed, tab and carriage return
SPACE = "▁"
HAN = ("CJK ", "IDEOGRAPHIC ", "HANGZHOU ")  # how the names of Chinese characters begin


def continuations(
    vocabulary: Mapping[str, int], size: int, kind: str, prefix: str = "", apart: Iterable[int] = ()
) -> np.ndarray:
    """[size] bool. `prefix` marks a continuation ("##"); without one, a piece that does not begin with a space is one.

    Ids in `apart` (special and added tokens) never continue a word, nor do whole words as pieces. Of single characters
    those that form words do, but only after another of them: a space before them is a piece of its own.
    """
    found = np.zeros(size, dtype=np.bool_)
    if kind == "words":
        return found
    if kind == "characters":
        found[[id for piece, id in vocabulary.items() if forms_words(piece)]] = True
        found[list(apart)] = False
        return found
    marks = BYTE_SPACES if kind == "byte-bpe" else (SPACE,)
    if not prefix and not any(piece.startswith(marks) for piece in vocabulary):
        return found
    for piece, id in vocabulary.items():
        if prefix:
            found[id] = piece.startswith(prefix) and len(piece) > len(prefix)
        else:
            found[id] = bool(piece) and not piece.startswith(marks)
    found[list(apart)] = False
    return found


def forms_words(character: str) -> bool:
    """Letters, digits and marks do. White space, punctuation, symbols and ideographs stand alone."""
    if len(character) != 1 or character.isspace() or unicodedata.category(character)[0] in "PSZ":
        return False
    return not unicodedata.name(character, "").startswith(HAN)
