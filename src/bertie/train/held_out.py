"""A corpus enters, two parts of it leave: most documents to learn from, and one in so many to be measured on."""

from functools import cached_property

import numpy as np

from bertie.data.samples.source import Documents, StoredDocument
from bertie.errors import SpecError

LEAST = 2  # documents: a false second stretch needs another document
KEY = 0  # the same documents whatever the run's seed, so that runs can be compared


class CorpusPart:
    """Some documents of a corpus, numbered anew."""

    def __init__(self, documents: Documents, numbers: np.ndarray):
        self.documents, self.numbers = documents, numbers

    @property
    def num_documents(self) -> int:
        return len(self.numbers)

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.asarray(self.documents.lengths)[self.numbers]

    def document(self, index: int) -> StoredDocument:
        return self.documents.document(int(self.numbers[index]))


def hold_out(documents: Documents, one_in: int) -> tuple[CorpusPart, CorpusPart]:
    """The part to learn from and the part to measure on. Which documents these are depends on their number alone."""
    total = documents.num_documents
    count = max(LEAST, round(total / one_in))
    if total < 2 * count:
        raise SpecError(
            f"the corpus has {total:,} documents, too few to hold out {count:,} of them",
            hint="hold out none with --held-out 0, or use a larger corpus",
        )
    drawn = np.random.Generator(np.random.Philox(key=KEY)).random(total)
    held = np.zeros(total, bool)
    held[np.argsort(drawn, kind="stable")[:count]] = True
    return CorpusPart(documents, np.flatnonzero(~held)), CorpusPart(documents, np.flatnonzero(held))
