"""Finds which samples a step takes: the (epoch, number) of its rows.

Nothing is walked: the order of an epoch is a keyed permutation that is computed where it is needed, and batches under a
budget of tokens are found in prefix sums over the permuted lengths. Batches run on over the ends of epochs, so each is
full, and every sample comes once an epoch.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bertie.data.batching import BatchSize, Rows
from bertie.data.samples.sample_protocols import Samples, generator
from bertie.data.samples.streams import StreamSamples
from bertie.errors import SpecError

ROUNDS = 6
CHUNK = 1 << 16  # samples whose prefix sums are held at once


class SampleKey(NamedTuple):
    epoch: int
    number: int


class Permutation:
    """0 to size - 1 in a random order, without holding it: a Feistel network over a power of four, where what falls
    outside is sent through again until it falls inside."""

    def __init__(self, size: int, rng: np.random.Generator):
        self.size = size
        self.half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
        self.low = np.uint64((1 << int(self.half)) - 1)
        self.keys = rng.integers(0, 1 << 64, ROUNDS, np.uint64)

    def __call__(self, places: np.ndarray) -> np.ndarray:
        values = self._once(np.asarray(places).astype(np.uint64))
        while (outside := np.flatnonzero(values >= self.size)).size:
            values[outside] = self._once(values[outside])
        return values.astype(np.int64)

    def _once(self, values: np.ndarray) -> np.ndarray:
        left, right = values >> self.half, values & self.low
        for key in self.keys:
            # The finaliser of splitmix64: every bit of the value changes every bit of the answer with probability 1/2.
            mixed = right + key
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            left, right = right, left ^ ((mixed ^ (mixed >> np.uint64(31))) & self.low)
        return (left << self.half) | right


class EpochPlan:
    """The batches of one shape of sample, for ever."""

    def __init__(self, samples: Samples, size: BatchSize, seed: int):
        self.samples, self.size, self.seed = samples, size, seed
        self.num_samples = samples.num_samples
        self.order = lru_cache(4)(self._order)
        if isinstance(size, Rows):
            self._by_rows: int | None = size.rows
            return
        self._by_rows = None
        self.window = self.window_of(size.tokens)
        if isinstance(samples, StreamSamples) and size.tokens < self.window:
            raise SpecError(
                f"a step of {size.tokens:,} tokens cannot hold a row of each of {samples.num_streams:,} streams",
                hint=f"give at least `batch_tokens={self.window}`, shorter rows, or fewer streams",
            )
        if self.window < samples.longest:
            raise SpecError(
                f"a budget of {size.tokens:,} tokens is too small for rows of up to {samples.longest:,}",
                hint=f"give at least {2 * samples.longest - 1:,} tokens, or shorter rows",
            )
        self.chunk_ends = lru_cache(4)(self._chunk_ends)
        self.chunk = lru_cache(4)(self._chunk)
        self.total = int(self.chunk_ends(0)[-1])

    def __reduce__(self) -> tuple[object, ...]:
        """Goes to other processes as what it was made of."""
        return type(self), (self.samples, self.size, self.seed)

    @property
    def steps_per_epoch(self) -> float:
        if self._by_rows:
            return self.num_samples / self._by_rows
        return self.total / self.window

    def window_of(self, tokens: int) -> int:
        """A batch takes the samples that begin inside its window of the permuted text. With windows so much shorter
        than the budget the last one's tail still fits. Of streams a step takes one row each."""
        if isinstance(self.samples, StreamSamples):
            return self.samples.num_streams * self.samples.longest
        return tokens - self.samples.longest + 1

    def batch(self, step: int, rank: int = 0, num_ranks: int = 1) -> list[SampleKey]:
        """The rows of a step. Each rank has batches of its own, of the full size, without overlap."""
        if not 0 <= rank < num_ranks or step < 0:
            raise ValueError(f"step {step} of rank {rank} of {num_ranks}")
        number = step * num_ranks + rank
        if self._by_rows:
            places = np.arange(number * self._by_rows, (number + 1) * self._by_rows)
            return self._keys(places)
        return self.between(number * self.window, (number + 1) * self.window)

    def between(self, begin: int, end: int) -> list[SampleKey]:
        """The samples that begin between two positions of the endless text; of a plan by tokens."""
        return self._keys(np.arange(self._place(begin), self._place(end)))

    def _keys(self, places: np.ndarray) -> list[SampleKey]:
        """Places in the endless row of epochs, to samples."""
        epochs, inside = np.divmod(places, self.num_samples)
        keys = []
        for epoch in np.unique(epochs).tolist():
            indices = self.order(epoch)(inside[epochs == epoch]) if self.samples.shuffled else inside[epochs == epoch]
            keys += [SampleKey(epoch, index) for index in indices.tolist()]
        return keys

    def _order(self, epoch: int) -> Permutation:
        return Permutation(self.num_samples, generator(self.seed, epoch, 0, "order"))

    def _place(self, position: int) -> int:
        """How many samples begin before a position of the endless text: an epoch has the same size each time."""
        epoch, inside = divmod(position, self.total)
        ends = self.chunk_ends(epoch)
        chunk = int(np.searchsorted(ends, inside, side="right"))
        before = int(ends[chunk - 1]) if chunk else 0
        # A sample begins where the one before it ends.
        starts = self.chunk(epoch, chunk)[1] + before
        return epoch * self.num_samples + chunk * CHUNK + int(np.searchsorted(starts, inside))

    def _chunk(self, epoch: int, chunk: int) -> tuple[int, np.ndarray]:
        """The chunk's tokens, and where in it each sample begins."""
        places = np.arange(chunk * CHUNK, min((chunk + 1) * CHUNK, self.num_samples))
        lengths = self.samples.lengths(self.order(epoch)(places) if self.samples.shuffled else places)
        ends = np.cumsum(lengths, dtype=np.int64)
        return int(ends[-1]), ends - lengths

    def _chunk_ends(self, epoch: int) -> np.ndarray:
        """[chunks] prefix sums: all that is held of a whole epoch."""
        num_chunks = -(-self.num_samples // CHUNK)
        return np.cumsum([self._chunk(epoch, chunk)[0] for chunk in range(num_chunks)], dtype=np.int64)
