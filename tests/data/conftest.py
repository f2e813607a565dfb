"""A corpus in memory, with the interface of the one on disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from bertie.data.samples.frame import Frame

FIRST, SEPARATOR, MASK = 1, 2, 3
SPECIAL = (0, FIRST, SEPARATOR, MASK)
VOCAB_SIZE = 30_000


@dataclass(frozen=True)
class MemoryDocument:
    ids: np.ndarray
    sentences: np.ndarray
    words: np.ndarray
    name: str = ""


@dataclass
class MemoryCorpus:
    rows: list[MemoryDocument]
    lengths: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.lengths = np.array([len(row.ids) for row in self.rows], np.int64)

    @property
    def num_documents(self) -> int:
        return len(self.rows)

    def document(self, index: int) -> MemoryDocument:
        return self.rows[index]


def draw_document(rng: np.random.Generator, length: int, next_id: int | None = None) -> MemoryDocument:
    """Words of 1 to 4 pieces, sentences of some 12 words. `next_id` numbers the tokens on from there."""
    words = np.zeros(length, bool)
    sentences = [0] if length else []
    position, in_sentence = 0, 0
    while position < length:
        words[position] = True
        in_sentence += 1
        position += int(rng.integers(1, 5))
        if in_sentence >= 12 and rng.random() < 0.3 and position < length:
            sentences.append(position)
            in_sentence = 0
    ids = rng.integers(len(SPECIAL), VOCAB_SIZE, length) if next_id is None else np.arange(next_id, next_id + length)
    return MemoryDocument(ids.astype(np.uint32), np.array(sentences, np.uint32), words)


CorpusMaker = Callable[..., MemoryCorpus]


@pytest.fixture(scope="session")
def make_corpus() -> CorpusMaker:
    """`make_corpus([300, 5, ...])`: documents of these lengths; with `numbered` no two tokens are alike."""

    def make(lengths: Sequence[int], seed: int = 0, numbered: bool = False) -> MemoryCorpus:
        rng = np.random.default_rng(seed)
        rows, next_id = [], 100
        for length in lengths:
            rows.append(draw_document(rng, length, next_id if numbered else None))
            next_id += length
        return MemoryCorpus(rows)

    return make


@pytest.fixture(scope="session")
def frame() -> Frame:
    return Frame(first=FIRST, separator=SEPARATOR)
