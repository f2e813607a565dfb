"""Chooses which tokens of a sample are to be predicted: turns the words of a sample into units of positions.

Numpy only; randomness is the caller's generator. The budget is exact: units are taken until it is reached, and the one
that goes over it is taken or left with the probability that makes the expected number of tokens the budget itself.
So no length of word is preferred, and a sample is off by less than one word.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from bertie.spec import Spec


class Chosen(NamedTuple):
    positions: np.ndarray  # [P] in order
    units: np.ndarray  # [P] from 0: what was chosen together has one number


class EachToken(Spec):
    """Single tokens, any of them equally likely."""

    kind: Literal["tokens"] = "tokens"

    def choose(self, words: np.ndarray, eligible: np.ndarray, budget: float, rng: np.random.Generator) -> Chosen:
        """`words` [n] numbers each token's word, -1 for tokens of none; `eligible` [n] bool: it may be chosen."""
        candidates = np.flatnonzero(eligible)
        count = min(_round(budget, rng), len(candidates))
        positions = np.sort(rng.choice(candidates, size=count, replace=False))
        return Chosen(positions, np.arange(count))


class WholeWords(Spec):
    """Whole words: all pieces of a word or none. A word with a piece that may not be chosen is not chosen at all."""

    kind: Literal["whole-word"] = "whole-word"

    def choose(self, words: np.ndarray, eligible: np.ndarray, budget: float, rng: np.random.Generator) -> Chosen:
        starts, ends = word_bounds(words, eligible)
        if not len(starts):
            return _gather([], [])
        order = rng.permutation(len(starts))
        totals = np.cumsum((ends - starts)[order])
        last = min(int(np.searchsorted(totals, budget)), len(order) - 1)
        over = totals[last] - budget
        if last and over > 0 and rng.random() * (ends - starts)[order[last]] < over:
            last -= 1
        taken = np.sort(order[: last + 1])
        return _gather(starts[taken].tolist(), ends[taken].tolist())


class Spans(Spec):
    """Neighbouring whole words; how many is drawn from a geometric distribution, cut off at `longest` words."""

    kind: Literal["spans"] = "spans"
    stop: float = Field(default=0.2, gt=0, le=1)  # the probability that a span ends after a word
    longest: int = Field(default=10, ge=1)

    def choose(self, words: np.ndarray, eligible: np.ndarray, budget: float, rng: np.random.Generator) -> Chosen:
        return choose_runs(words, eligible, budget, self.stop * (1 - self.stop) ** np.arange(self.longest), rng)


class NGrams(Spec):
    """Neighbouring whole words, n of them with a probability in proportion to 1/n."""

    kind: Literal["ngrams"] = "ngrams"
    longest: int = Field(default=3, ge=1)

    def choose(self, words: np.ndarray, eligible: np.ndarray, budget: float, rng: np.random.Generator) -> Chosen:
        return choose_runs(words, eligible, budget, 1 / np.arange(1, self.longest + 1), rng)


Chooser = Annotated[EachToken | WholeWords | Spans | NGrams, Field(discriminator="kind")]


class Replacement(Spec):
    """What stands at a chosen position instead: mostly the mask, sometimes any token, else the token itself."""

    mask_share: float = Field(default=0.8, ge=0, le=1)
    random_share: float = Field(default=0.1, ge=0, le=1)
    per: Literal["token", "unit"] = "token"  # "unit": what was chosen together is treated alike

    @model_validator(mode="after")
    def _at_most_the_whole(self) -> "Replacement":
        if self.mask_share + self.random_share > 1:
            raise ValueError("mask_share and random_share together are more than the whole")
        return self

    def replace_tokens(
        self, tokens: np.ndarray, chosen: Chosen, mask_id: int, vocab_size: int, rng: np.random.Generator
    ) -> np.ndarray:
        positions, units = chosen
        owners = units if self.per == "unit" else np.arange(len(positions))
        draw = rng.random(int(owners.max(initial=-1)) + 1)[owners]
        masked, changed = draw < self.mask_share, draw >= 1 - self.random_share
        replaced = tokens.copy()
        replaced[positions[masked]] = mask_id
        replaced[positions[changed]] = rng.integers(0, vocab_size, changed.sum())
        return replaced


def word_bounds(words: np.ndarray, eligible: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each word begins and ends whose tokens may all be chosen: runs of one number from 0 on."""
    changes = np.flatnonzero(words[1:] != words[:-1]) + 1
    starts = np.append(0, changes) if len(words) else changes
    ends = np.append(changes, len(words)) if len(words) else changes
    # Where the next token that may not be chosen stands: past the end of the word, if it is to be whole.
    barred = np.append(np.flatnonzero(~eligible), len(words))
    whole = (words[starts] >= 0) & (barred[np.searchsorted(barred, starts)] >= ends)
    return starts[whole], ends[whole]


def choose_runs(
    words: np.ndarray, eligible: np.ndarray, budget: float, weights: np.ndarray, rng: np.random.Generator
) -> Chosen:
    """Runs of neighbouring words that begin anywhere: n words with a probability in proportion to `weights[n - 1]`.

    A run ends early at a word that is taken, at a word that cannot be chosen, and where the budget is reached.
    """
    first_tokens, end_tokens = word_bounds(words, eligible)
    starts, ends = first_tokens.tolist(), end_tokens.tolist()
    anchors = rng.permutation(len(starts))
    wanted = rng.choice(len(weights), size=len(anchors), p=weights / weights.sum()) + 1
    taken = bytearray(len(starts))
    chosen: list[tuple[int, int]] = []  # first and last word of each run
    total = 0
    for anchor, count in zip(anchors.tolist(), wanted.tolist(), strict=True):
        if total >= budget:
            break
        word = anchor
        while word < len(starts) and word < anchor + count and not taken[word] and total < budget:
            if word > anchor and starts[word] != ends[word - 1]:
                break
            size = ends[word] - starts[word]
            over = total + size - budget
            if over > 0 and total and rng.random() * size < over:
                total = int(np.ceil(budget))  # the last word is left: nothing more is taken
                break
            taken[word] = 1
            total += size
            word += 1
        if word > anchor:
            chosen.append((anchor, word - 1))
    chosen.sort()
    return _gather([starts[first] for first, _ in chosen], [ends[last] for _, last in chosen])


def _gather(starts: list[int], ends: list[int]) -> Chosen:
    """Units by where they begin and end."""
    sizes = np.subtract(ends, starts).astype(np.int64)
    units = np.repeat(np.arange(len(sizes)), sizes)
    begins = np.cumsum(sizes) - sizes
    positions = np.arange(len(units)) - begins[units] + np.asarray(starts, np.int64)[units]
    return Chosen(positions, units)


def _round(budget: float, rng: np.random.Generator) -> int:
    """Up or down, so that the mean is the budget."""
    return int(budget) + int(rng.random() < budget % 1)
