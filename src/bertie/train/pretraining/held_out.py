"""Splits a corpus in two: most documents to train on, and one in so many to evaluate on."""

from functools import cached_property

import numpy as np

from bertie.data.samples.sample_protocols import Documents, StoredDocument
from bertie.errors import SpecError

LEAST = 2  # documents: a negative pair needs another document
KEY = 0  # the same documents whatever the run's seed, so that runs can be compared


class CorpusPart:
    """Some documents of a corpus, numbered from 0."""

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
    """Returns the part to train on and the part to evaluate on; they depend on the number of documents alone."""
    total = documents.num_documents
    count = max(LEAST, round(total / one_in))
    if total < 2 * count:
        raise SpecError(
            f"the corpus has {total:,} documents, too few to hold out {count:,} of them",
            hint="hold out none with `held_out=0`, or use a larger corpus",
        )
    drawn = np.random.Generator(np.random.Philox(key=KEY)).random(total)
    held = np.zeros(total, bool)
    held[np.argsort(drawn, kind="stable")[:count]] = True
    return CorpusPart(documents, np.flatnonzero(~held)), CorpusPart(documents, np.flatnonzero(held))
