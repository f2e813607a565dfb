"""From seconds to a verdict: the raw turns of a run enter, speeds, ratios and bars leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

OURS, REFERENCE = "bertie", "sentence-transformers"
LOWEST_COSINE = 0.9999


@dataclass(frozen=True)
class Speed:
    """Tokens a second of one contender over the rounds."""

    best: float
    middle: float
    slowest: float

    @classmethod
    def of(cls, tokens: int, seconds: Sequence[float]) -> "Speed":
        return cls(tokens / min(seconds), tokens / median(seconds), tokens / max(seconds))

    @property
    def spread(self) -> float:
        """How much slower the slowest round was than the best, as a share."""
        return 1 - self.slowest / self.best


@dataclass(frozen=True)
class Bar:
    """What must be reached, and what is hoped for."""

    name: str
    value: float
    must: float | None
    goal: float

    @property
    def holds(self) -> bool:
        return self.must is None or self.value >= self.must

    @property
    def reached(self) -> bool:
        return self.value >= self.goal

    def __str__(self) -> str:
        must = "" if self.must is None else f"bar {self.must:.2f}: {'holds' if self.holds else 'BROKEN'}, "
        goal = f"goal {self.goal:.2f}: {'reached' if self.reached else 'not yet'}"
        return f"{self.name:<36} {self.value:5.2f}   {must}{goal}"


def judge(speeds: Mapping[str, Speed], share_of_peak: float) -> list[Bar]:
    """Best round against best round."""
    own = speeds[OURS].best
    others = {name: speed.best for name, speed in speeds.items() if name not in (OURS, REFERENCE)}
    fastest = max(others, key=lambda name: others[name])
    return [
        Bar(f"times {REFERENCE}", own / speeds[REFERENCE].best, 1.25, 1.6),
        Bar(f"times the best other ({fastest})", own / others[fastest], 1.05, 1.25),
        Bar("share of the float32 peak", share_of_peak, None, 0.80),
    ]


def paired_ratio(own: Sequence[float], other: Sequence[float]) -> float:
    """The middle of the rounds' own ratios of speed: where the machine changes its pace, both change."""
    return median(theirs / ours for ours, theirs in zip(own, other, strict=True))


def lowest_cosine(vectors: np.ndarray, reference: np.ndarray) -> float:
    """Over the texts, [N, H] each."""
    if vectors.shape != reference.shape:
        raise ValueError(f"vectors {vectors.shape} cannot be compared with {reference.shape}")
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(reference, axis=1)
    return float(((vectors * reference).sum(1) / lengths).min())
