"""Joins all documents into one long text, of which any range is found by prefix sums. A separator, where the
tokenizer has one, ends each document."""

from typing import NamedTuple

import numpy as np

from bertie.data.samples.sample_protocols import Documents


class JoinedRange(NamedTuple):
    ids: np.ndarray  # [n] int64
    begins: np.ndarray  # [n] bool, True where a token begins a word
    documents: np.ndarray  # [n] int64, the document of each token; a separator is of the document that it ends
    separators: np.ndarray  # [n] bool

    def word_numbers(self) -> np.ndarray:
        """[n] from 0, -1 for separators. The first token begins a word, whatever it did in its document."""
        begins = self.begins.copy()
        begins[:1] = True
        return np.where(self.separators, -1, np.cumsum(begins & ~self.separators) - 1)


class JoinedDocuments:
    def __init__(self, documents: Documents, separator: int | None):
        self.documents, self.separator = documents, separator
        lengths = np.asarray(documents.lengths, np.int64)
        self.num_ends = int(separator is not None)
        occupied = np.where(lengths > 0, lengths + self.num_ends, 0)
        self.ends = np.cumsum(occupied)
        self.total = int(self.ends[-1]) if len(self.ends) else 0

    def find(self, position: int) -> tuple[int, int]:
        """The document at a position, and where it begins."""
        number = int(np.searchsorted(self.ends, position, side="right"))
        return number, int(self.ends[number - 1]) if number else 0

    def read(self, start: int, end: int) -> JoinedRange:
        """Positions `start` to `end`; `end` is at most the total."""
        size = end - start
        found = JoinedRange(
            np.empty(size, np.int64), np.zeros(size, bool), np.empty(size, np.int64), np.zeros(size, bool)
        )
        position = start
        while position < end:
            number, origin = self.find(position)
            document = self.documents.document(number)
            text_end = origin + len(document.ids)
            here, there = position - start, min(text_end, end) - start
            if there > here:
                inside = slice(position - origin, min(text_end, end) - origin)
                found.ids[here:there] = document.ids[inside]
                found.begins[here:there] = document.words[inside]
            position = min(int(self.ends[number]), end)
            if self.separator is not None and position > text_end:
                found.ids[text_end - start] = self.separator
                found.separators[text_end - start] = True
            found.documents[here : position - start] = number
        return found
