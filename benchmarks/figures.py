"""From seconds to a verdict: the raw turns of a run enter, speeds, ratios and bars leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

OURS, REFERENCE = "bertie", "sentence-transformers"
LOWEST_COSINE = 0.9999
SAME_ENGINE = ", same engine"  # ends the name of a peer's second row, which has bertie's setting
# Where torch's own engine is the fastest there is, its users have it already: this share of the peak is then enough.
ENOUGH_SHARE = 0.80
PACKED = " packed"  # ends the name of an engine whose weights were laid out beforehand
NEARLY = 0.95  # of the fastest engine's speed: as fast


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

    def facts(self) -> dict[str, float]:
        return {"best": self.best, "median": self.middle, "spread": self.spread}


@dataclass(frozen=True)
class Peak:
    """The fastest float32 products of a run, by engine."""

    flops: float
    product: str
    engines: Mapping[str, float]
    default: str  # torch's own engine

    @classmethod
    def of(cls, turns: Sequence[Mapping[str, Any]]) -> "Peak":
        """The best of all rounds, of each engine too."""
        best = max(turns, key=lambda turn: float(turn["flops"]))
        names = dict.fromkeys(name for turn in turns for name in turn["engines"])
        engines = {name: max(turn["engines"].get(name, 0.0) for turn in turns) for name in names}
        return cls(best["flops"], best["product"], engines, best["default"])

    @property
    def default_is_fastest(self) -> bool:
        """Whether the fastest engine is torch's own, with weights in either layout."""
        own = [flops for name, flops in self.engines.items() if name.removesuffix(PACKED) == self.default]
        return max(own, default=0.0) >= NEARLY * max(self.engines.values())

    def enough(self, share: float) -> float | None:
        """The share of this peak, where it may count instead of a ratio."""
        return share if self.default_is_fastest else None

    def facts(self) -> dict[str, Any]:
        return {"flops": self.flops, "product": self.product, "engines": dict(self.engines), "default": self.default}

    def __str__(self) -> str:
        engines = ", ".join(f"{name} {flops / 1e9:,.0f}" for name, flops in self.engines.items())
        return f"float32 peak {self.flops / 1e9:,.0f} GFLOP/s at {self.product} ({engines})"


@dataclass(frozen=True)
class Bar:
    """What must be reached, and what is hoped for. `share` of the peak is given where it may count instead."""

    name: str
    value: float
    must: float | None
    goal: float | None = None
    share: float | None = None

    @property
    def by_share(self) -> bool:
        """It holds for its share of the peak alone."""
        missed = self.must is not None and self.value < self.must
        return missed and self.share is not None and self.share >= ENOUGH_SHARE

    @property
    def holds(self) -> bool:
        return self.must is None or self.value >= self.must or self.by_share

    @property
    def reached(self) -> bool:
        return self.holds if self.goal is None else self.value >= self.goal

    @property
    def verdict(self) -> str:
        if self.by_share:
            return f"holds by {self.share:.2f} of the peak, as torch's own engine is the fastest"
        return "holds" if self.holds else "BROKEN"

    def __str__(self) -> str:
        must = [] if self.must is None else [f"bar {self.must:.2f}: {self.verdict}"]
        goal = [] if self.goal is None else [f"goal {self.goal:.2f}: {'reached' if self.reached else 'not yet'}"]
        return f"{self.name:<36} {self.value:5.2f}   {', '.join([*must, *goal])}"

    def facts(self) -> dict[str, Any]:
        told = {"name": self.name, "value": self.value, "must": self.must, "goal": self.goal}
        return {**told, "holds": self.holds, "reached": self.reached, "verdict": self.verdict, "line": str(self)}


def judge(speeds: Mapping[str, Speed], share_of_peak: float, enough: float | None = None) -> list[Bar]:
    """Best round against best round, peers as their users run them."""
    own = speeds[OURS].best
    peers = {name: speed.best for name, speed in speeds.items() if name != OURS and not name.endswith(SAME_ENGINE)}
    reference = peers.pop(REFERENCE)
    fastest = max(peers, key=lambda name: peers[name])
    return [
        Bar(f"times {REFERENCE}", own / reference, 1.6, share=enough),
        Bar(f"times the best other ({fastest})", own / peers[fastest], 1.10, 1.25, enough),
        Bar("share of the float32 peak", share_of_peak, 0.75, 0.85),
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
