"""A vocabulary in, for each id whether its piece continues the word of the piece before it out."""

from collections.abc import Iterable, Mapping

import numpy as np

BYTE_SPACES = ("Ġ", "Ċ", "ĉ", "č")  # how byte-level pieces write space, line feed, tab and carriage return
SPACE = "▁"


def continuations(
    vocabulary: Mapping[str, int], size: int, kind: str, prefix: str = "", apart: Iterable[int] = ()
) -> np.ndarray:
    """[size] bool. `prefix` marks a continuation ("##"); without one, a piece that does not begin with a space is one.

    Ids in `apart` (special and added tokens) never continue a word, nor do single characters and whole words as pieces:
    what they say of words stands between the pieces, not in them.
    """
    found = np.zeros(size, dtype=np.bool_)
    if kind in ("characters", "words"):
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
