"""Defines the shapes of sample that objectives ask for. `data/samples/` builds them.

Every sample has `tokens` [n] with the special tokens in place and `words` [n], the number of each token's word, -1 for
special tokens. `length` is the longest row, special tokens included.
"""

from typing import Annotated, Literal

from pydantic import Field

from bertie.spec import Spec


class Segments(Spec):
    """One segment of one document. An epoch holds every token once; documents are cut evenly, between words."""

    kind: Literal["segments"] = "segments"
    length: int = Field(default=128, ge=8)


class Pairs(Spec):
    """Two segments with their relation: also `segments` (0 or 1) and the label `partner`.

    `partner` is 0 where the second segment follows the first, and 1, in half of the samples, where it does not: it is
    then from another document, or, with `order`, the two are swapped.
    """

    kind: Literal["pairs"] = "pairs"
    length: int = Field(default=128, ge=8)
    order: bool = False
    short_share: float = Field(default=0.1, ge=0, le=1)  # the share of samples that are made short on purpose


class Packed(Spec):
    """Full sentences one after another across documents, with a separator where a document ends: also `documents`
    [n], numbered from 0 in each row. A sentence is cut only where it does not fit into a row."""

    kind: Literal["packed"] = "packed"
    length: int = Field(default=512, ge=16)


class Streams(Spec):
    """The corpus as endless streams, for memory between steps: row b of a step continues exactly where row b of the
    step before it ended. Also `documents` [n] and `following`, the token after the row's last one."""

    kind: Literal["streams"] = "streams"
    length: int = Field(default=128, ge=1)
    num_streams: int = Field(default=16, ge=1)


class Windows(Spec):
    """A segment without special tokens, each token the centre of a window: also `reach` [n], how far its window
    goes (drawn from 1 to the shape's own `reach`), and `sentences` [n], which no window crosses."""

    kind: Literal["windows"] = "windows"
    length: int = Field(default=1024, ge=8)
    reach: int = Field(default=5, ge=1)


class Parallel(Spec):
    """A text and its translation in one row: also `languages` [n], 0 for the one and 1 for the other, and `positions`
    [n], counted from 0 in each of the two, so that a word and its translation are near each other."""

    kind: Literal["parallel"] = "parallel"
    length: int = Field(default=256, ge=8)


SampleShape = Annotated[Segments | Pairs | Packed | Streams | Windows | Parallel, Field(discriminator="kind")]
