"""What samples are made of, and what they are: the protocols of a corpus and of numbered samples.

Randomness: every sample has a generator of its own, keyed by (seed, epoch, index), so that a sample does not depend on
who builds it, nor when.
"""

from typing import Literal, NamedTuple, Protocol

import numpy as np

from bertie.batch import Sample

Purpose = Literal["order", "sample", "corrupt", "tasks", "noise", "held-out rows"]
PURPOSES: dict[Purpose, int] = {"order": 0, "sample": 1, "corrupt": 2, "tasks": 3, "noise": 4, "held-out rows": 5}


class StoredDocument(Protocol):
    @property
    def ids(self) -> np.ndarray:
        """[n] token ids, without special tokens."""

    @property
    def sentences(self) -> np.ndarray:
        """[sentences] the first token of each, from 0."""

    @property
    def words(self) -> np.ndarray:
        """[n] bool, True where a token begins a word."""


Arrays = dict[str, np.ndarray]  # the fields of a sample that nothing is to be predicted of yet


class Documents(Protocol):
    """A corpus, or anything that stands for one."""

    @property
    def num_documents(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray:
        """[documents] tokens of each."""

    def document(self, index: int) -> StoredDocument: ...


class Samples(Protocol):
    """Numbered samples of one shape."""

    @property
    def num_samples(self) -> int:
        """Samples of one epoch, the same in each."""

    @property
    def longest(self) -> int:
        """No sample has more tokens."""

    @property
    def shuffled(self) -> bool:
        """Whether an epoch may take them in any order. Streams may not be shuffled."""

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """[indices] tokens of these samples at most, the same in each epoch; known without building them."""

    def sample(self, seed: int, epoch: int, index: int) -> Sample: ...


class Stretch(NamedTuple):
    """Neighbouring tokens of one document."""

    ids: np.ndarray  # [n]
    begins: np.ndarray  # [n] bool, True where a token begins a word

    @classmethod
    def of(cls, document: StoredDocument, start: int, end: int) -> "Stretch":
        return cls(document.ids[start:end], document.words[start:end])


def generator(seed: int, epoch: int, index: int, purpose: Purpose) -> np.random.Generator:
    """Philox counts in 256 bits: the seed is its key, and each (purpose, epoch, index) begins a range of its own."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, PURPOSES[purpose], index, epoch]))
