"""What the most frequent answer scores, when it is given to every row."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Majority:
    answer: str  # in words
    metric: str
    score: float


def most_frequent(values: Iterable[Any]) -> Any:
    """Of equally frequent ones the first in order, whatever the order of the rows."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))
