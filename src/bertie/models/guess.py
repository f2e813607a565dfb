"""What a masked model answers for a gap in a text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Guess:
    """One candidate for a masked token."""

    token: str
    probability: float
    id: int
    gap: int  # which mask of the text, from 0
