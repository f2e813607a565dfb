"""What a tokenizer returns: one text as the model sees it, many texts as flat ids, and the ids with a special meaning.

Axes: n tokens of one text; B texts; T tokens of all B texts one after another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Tokens:
    """One text, or a pair of texts, as the model sees it.

    A special token written out in the text itself, such as "[MASK]", has its special id, but keeps its place in the
    text: `special` marks only what the tokenizer put around the text.
    """

    ids: np.ndarray  # [n] int64
    offsets: np.ndarray  # [n, 2] int64, characters of the token's own text (of its own word for pre-split words)
    words: np.ndarray  # [n] int64, -1 for special tokens; goes on counting in the second text
    segments: np.ndarray  # [n] int64, 0 or 1: the type that the model is to be given
    special: np.ndarray  # [n] bool
    num_truncated: int = 0  # tokens cut off to fit max_length
    second_start: int | None = None  # first position of the second text; None without a second text

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def texts(self) -> np.ndarray:
        """[n] 0 or 1 for the text that a token was read from, -1 for special tokens.

        Not the same as `segments`: some models give both texts of a pair the type 0.
        """
        start = len(self.ids) if self.second_start is None else self.second_start
        texts = (np.arange(len(self.ids)) >= start).astype(np.int64)
        texts[self.special] = -1
        return texts


@dataclass(frozen=True)
class FlatIds:
    """The ids of many texts, stored one after another."""

    ids: np.ndarray  # [T] int64
    lengths: np.ndarray  # [B] int64
    num_truncated: np.ndarray  # [B] int64, tokens cut off from each text

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[np.ndarray]:
        """The ids of each text in turn, as views."""
        end = 0
        for length in self.lengths.tolist():
            start, end = end, end + length
            yield self.ids[start:end]


@dataclass(frozen=True)
class SpecialTokens:
    """Ids with a meaning of their own; None where the tokenizer has no such token."""

    pad: int | None = None
    unk: int | None = None
    first: int | None = None
    separator: int | None = None
    mask: int | None = None

    def ids(self) -> list[int]:
        """The ids that exist, in ascending order, each once."""
        values = (getattr(self, field.name) for field in fields(self))
        return sorted({value for value in values if value is not None})

    def count_unknown(self, ids: np.ndarray) -> "UnknownCount":
        """Of ids with their special tokens, which are not counted."""
        if self.unk is None or not len(ids):
            return UnknownCount(0, len(ids))
        others = [id for id in (self.pad, self.first, self.separator, self.mask) if id not in (None, self.unk)]
        return UnknownCount(int((ids == self.unk).sum()), len(ids) - int(np.isin(ids, others).sum()))


SUSPICIOUS = 0.05  # of all tokens: text that a vocabulary was made for has far fewer unknown ones


class UnknownCount(NamedTuple):
    """How many tokens are unknown to a vocabulary, among how many."""

    num_unknown: int = 0
    num_tokens: int = 0

    def plus(self, other: "UnknownCount") -> "UnknownCount":
        return UnknownCount(self.num_unknown + other.num_unknown, self.num_tokens + other.num_tokens)

    @property
    def share(self) -> float:
        return self.num_unknown / max(1, self.num_tokens)

    def warning(self) -> str | None:
        """A sentence where they are so many that the vocabulary does not suit the text."""
        if (share := self.num_unknown / max(1, self.num_tokens)) <= SUSPICIOUS:
            return None
        return (
            f"{share:.1%} of the tokens ({self.num_unknown:,} of {self.num_tokens:,}) are unknown to the "
            "vocabulary: the model cannot tell them apart; use a model or a vocabulary for this language "
            "(`bertie vocab train` makes one, `bertie vocab extend` adds words)"
        )
