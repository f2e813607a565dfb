"""Packs full sentences across documents into rows with the field `documents`. An epoch loses no token.

The joined text is cut into blocks of about `ROWS` rows, and the number of rows of a block follows from its size alone,
so that any row is found without packing those before it. Inside a block each row ends at the sentence border nearest to
a fair share of what is left. Sentences are cut only where the rest of the block would not fit otherwise.
"""

from functools import lru_cache

import numpy as np

from bertie.data.samples.cuts import SLACK, word_start
from bertie.data.samples.frame import Frame
from bertie.data.samples.joined import JoinedDocuments
from bertie.data.samples.sample_protocols import Arrays, Documents
from bertie.data.shapes import Packed

ROWS = 32
TRIED = 64  # documents that are read for how long sentences are
MOST_BLOCKS = 64  # whose rows are remembered


class PackedSamples:
    shuffled = True

    def __init__(self, shape: Packed, documents: Documents, frame: Frame):
        self.frame = frame
        self.room = frame.room(shape.length)
        self.longest = shape.length
        self.joined = JoinedDocuments(documents, frame.separator)
        self.reach = self.room // 2  # how far the edge of a block moves back to the beginning of a sentence
        share = self.room * self._fill(documents)
        self.block = int(ROWS * share)
        num_blocks = self.joined.total // self.block
        rest = self.joined.total - self._block_edge(num_blocks)
        self.num_samples = num_blocks * ROWS + min(-(-rest // int(share)), ROWS)
        self.row_edges = lru_cache(MOST_BLOCKS)(self._row_edges)

    def __reduce__(self) -> tuple[object, ...]:
        """Goes to other processes as what it was made of."""
        return type(self), (Packed(length=self.longest), self.joined.documents, self.frame)

    def _fill(self, documents: Documents) -> float:
        """How full rows are to be on average. What is left over lets them end where sentences end: a row that ends
        before the sentence that would not fit loses half of a sentence that a random token is in."""
        chosen = np.unique(np.linspace(0, documents.num_documents - 1, TRIED).astype(int)).tolist()
        rows = [documents.document(number) for number in chosen if documents.lengths[number]]
        sizes = np.concatenate([np.zeros(0), *(np.diff(np.append(row.sentences, len(row.ids))) for row in rows)])
        lost = (sizes**2).sum() / (2 * max(sizes.sum(), 1))
        return float(np.clip(1 - 1.3 * lost / self.room, 0.6, 0.95))

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.full(len(indices), self.longest, np.int64)

    def sample(self, seed: int, epoch: int, index: int) -> Arrays:
        edges = self.row_edges(index // ROWS)
        found = self.joined.read(*edges[index % ROWS : index % ROWS + 2])
        tokens, words, numbers = found.ids, found.word_numbers(), found.documents
        if self.frame.first is not None:
            tokens, words = np.append(self.frame.first, tokens), np.append(-1, words)
            numbers = np.append(numbers[0], numbers)
        if self.frame.separator is not None and not found.separators[-1]:
            tokens, words = np.append(tokens, self.frame.separator), np.append(words, -1)
            numbers = np.append(numbers, numbers[-1])
        changes = np.append(False, numbers[1:] != numbers[:-1])
        return {"tokens": tokens, "words": words, "documents": np.cumsum(changes)}

    def _row_edges(self, block: int) -> list[int]:
        """Where the block's rows begin, and where the last one ends."""
        begin, end = self._block_edge(block), self._block_edge(block + 1)
        borders = self._borders(begin, end)
        num_rows = min(ROWS, self.num_samples - block * ROWS)
        floor = max((end - begin) // num_rows // 4, 3)
        edges = [begin]
        for rows_left in range(num_rows, 1, -1):
            here = edges[-1]
            # The rows that remain must be able to hold what remains, and none may be nearly empty.
            least = max(here + 1, end - (rows_left - 1) * self.room)
            most = min(here + self.room, end - (rows_left - 1) * floor)
            # A little above an even share, so that the last rows of the block still have a choice of borders.
            share = here + ((end - here) // rows_left * 7 + self.room) // 8
            share = min(max(share, least), most)
            first, last = np.searchsorted(borders, [least, most + 1])
            fitting = borders[first:last]
            edges.append(int(fitting[np.abs(fitting - share).argmin()]) if len(fitting) else self._word(share, least))
        return [*edges, end]

    def _borders(self, begin: int, end: int) -> np.ndarray:
        """Positions in a range of the joined text where sentences begin."""
        borders, position = [], begin
        while position < end:
            number, origin = self.joined.find(position)
            borders.append(np.asarray(self.joined.documents.document(number).sentences, np.int64) + origin)
            position = int(self.joined.ends[number])
        return np.concatenate(borders)

    def _block_edge(self, block: int) -> int:
        position = block * self.block
        if position == 0 or position >= self.joined.total:
            return min(position, self.joined.total)
        number, origin = self.joined.find(position)
        sentences = self.joined.documents.document(number).sentences
        sentence = origin + int(sentences[np.searchsorted(sentences, position - origin, side="right") - 1])
        return sentence if position - sentence <= self.reach else self._word(position, position - self.reach)

    def _word(self, position: int, least: int) -> int:
        """A cut inside a sentence: at the beginning of a word where one is near, never before a separator."""
        number, origin = self.joined.find(position)
        document = self.joined.documents.document(number)
        if position - origin >= len(document.ids):
            return position + 1  # the separator ends the row before; it stands where that row's own would
        return max(origin + word_start(document, position - origin, SLACK), least)
