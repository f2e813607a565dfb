"""Choosers: which positions of a sample are to be predicted. Numpy only; randomness is the caller's generator."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bertie.spec import Spec


class EachToken(Spec):
    """Single tokens, any of them equally likely."""

    kind: Literal["tokens"] = "tokens"

    def choose(self, eligible: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` of the eligible positions, in order."""
        return np.sort(rng.choice(eligible, size=min(count, len(eligible)), replace=False))


Chooser = Annotated[EachToken, Field()]


class Replacement(Spec):
    """What stands at a chosen position instead: mostly the mask, sometimes any token, else the token itself."""

    mask_share: float = Field(default=0.8, ge=0, le=1)
    random_share: float = Field(default=0.1, ge=0, le=1)

    def replace_tokens(
        self, tokens: np.ndarray, positions: np.ndarray, mask_id: int, vocab_size: int, rng: np.random.Generator
    ) -> np.ndarray:
        draw = rng.random(len(positions))
        masked, changed = draw < self.mask_share, draw >= 1 - self.random_share
        replaced = tokens.copy()
        replaced[positions[masked]] = mask_id
        replaced[positions[changed]] = rng.integers(0, vocab_size, changed.sum())
        return replaced
