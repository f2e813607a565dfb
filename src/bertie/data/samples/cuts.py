"""Cuts documents into numbered stretches of at most `room` tokens: even cuts, found by prefix sums.

A document that fits is one stretch; a longer one is cut into equal parts. A cut moves back to the beginning of its word
where that is near, so that words stay whole. The stretches of a document hold each of its tokens once.
"""

import numpy as np

from bertie.data.samples.sample_protocols import StoredDocument

SLACK = 8  # how far a cut may move back, in tokens


class EvenCuts:
    def __init__(self, lengths: np.ndarray, room: int, shortest: int = 1):
        """Documents of less than `shortest` tokens are left out."""
        self.document_lengths = np.asarray(lengths)
        self.room = room
        self.slack = min(SLACK, room // 4)
        self.ends = np.cumsum(np.where(self.document_lengths < shortest, 0, self._parts(self.document_lengths)))

    @property
    def num_stretches(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def locate(self, index: int) -> tuple[int, int, int]:
        """Document, part of it, number of its parts."""
        document = int(np.searchsorted(self.ends, index, side="right"))
        parts = int(self._parts(self.document_lengths[document]))
        return document, index - (int(self.ends[document]) - parts), parts

    def sizes(self, indices: np.ndarray) -> np.ndarray:
        """[indices] tokens at most."""
        lengths = self.document_lengths[np.searchsorted(self.ends, indices, side="right")].astype(np.int64)
        parts = self._parts(lengths)
        return np.where(parts == 1, lengths, -(-lengths // parts) + self.slack)

    def edges(self, document: StoredDocument, part: int, parts: int) -> tuple[int, int]:
        """Where in the document the part begins and ends."""
        return self._edge(document, part, parts), self._edge(document, part + 1, parts)

    def _parts(self, lengths: np.ndarray) -> np.ndarray:
        return np.where(lengths <= self.room, 1, -(-lengths // (self.room - self.slack)))

    def _edge(self, document: StoredDocument, part: int, parts: int) -> int:
        edge = part * len(document.ids) // parts
        return edge if part in (0, parts) else word_start(document, edge, self.slack)


def word_start(document: StoredDocument, position: int, slack: int) -> int:
    """The last beginning of a word at or before a position, at most `slack` tokens back; else the position itself."""
    lowest = max(position - slack + 1, 0)
    found = np.flatnonzero(document.words[lowest : position + 1])
    return lowest + int(found[-1]) if len(found) else position
