"""Makes samples of two stretches, with `segments` and the label `partner`: whether the second belongs to the first.

The true second stretch goes on where the first ends. The false one is from another document, or, for the order of
sentences, the two are swapped. Both labels are equally likely for every sample, whatever its document: a stretch
of a single sentence is divided between two words.
"""

import numpy as np

from bertie.data.samples.cuts import EvenCuts, word_start
from bertie.data.samples.frame import Frame
from bertie.data.samples.sample_protocols import Arrays, Documents, StoredDocument, Stretch, generator
from bertie.data.shapes import Pairs
from bertie.errors import InputError


class PairSamples:
    shuffled = True

    def __init__(self, shape: Pairs, documents: Documents, frame: Frame):
        self.shape, self.documents, self.frame = shape, documents, frame
        self.room = frame.room(shape.length, num_texts=2)
        self.longest = shape.length
        self.num_special = shape.length - self.room
        self.cuts = EvenCuts(documents.lengths, self.room, shortest=2)
        self._refuse_hopeless()

    def _refuse_hopeless(self) -> None:
        num_documents = int(np.count_nonzero(self.documents.lengths))
        if not self.shape.order and num_documents < 2:
            raise InputError(
                f"the corpus has {num_documents} document{'s' * (num_documents != 1)} with text, but a random second "
                "segment must come from another document",
                hint="build the corpus with its documents apart (a blank line ends one), or learn the order of "
                "sentences instead: `sentences=sop`",
            )
        if self.cuts.num_stretches == 0:
            raise InputError("no document of the corpus has two tokens, so there is no pair in it")

    @property
    def num_samples(self) -> int:
        return self.cuts.num_stretches

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        # A partner from another document may fill the row.
        return np.full(len(indices), self.longest, np.int64)

    def sample(self, seed: int, epoch: int, index: int) -> Arrays:
        rng = generator(seed, epoch, index, "sample")
        number, part, parts = self.cuts.locate(index)
        document = self.documents.document(number)
        short = rng.random() < self.shape.short_share
        target = int(rng.integers(2, self.room + 1)) if short else self.room
        start = self._start(document, part, parts)
        end = whole_sentences(document, start, start + target, least=2)
        middle = divide(document, start, end, rng)
        one, two = Stretch.of(document, start, middle), Stretch.of(document, middle, end)
        false = rng.random() < 0.5
        if false and self.shape.order:
            one, two = two, one
        elif false:
            two = self._other(number, target - (middle - start), rng)
        return {**self.frame.wrap_two(one, two), "partner": np.asarray(int(false))}

    def _start(self, document: StoredDocument, part: int, parts: int) -> int:
        """The sentence that the part begins in; but never before the part ahead of it."""
        length = len(document.ids)
        edge, before = part * length // parts, (part - 1) * length // parts
        sentence = int(document.sentences[np.searchsorted(document.sentences, edge, side="right") - 1])
        start = sentence if sentence > before or part == 0 else word_start(document, edge, self.cuts.slack)
        return min(start, length - 2)

    def _other(self, number: int, room: int, rng: np.random.Generator) -> Stretch:
        """Up to `room` tokens of any other document, from the beginning of any of its sentences."""
        while True:
            other = int(rng.integers(self.documents.num_documents - 1))
            other += other >= number
            if self.documents.lengths[other]:
                break
        document = self.documents.document(other)
        start = int(rng.choice(document.sentences))
        return Stretch.of(document, start, whole_sentences(document, start, start + room, least=1))


def whole_sentences(document: StoredDocument, start: int, limit: int, least: int) -> int:
    """The last end of a sentence up to a limit, if `least` sentences fit; else the last end of a word."""
    if limit >= len(document.ids):
        return len(document.ids)
    first, last = np.searchsorted(document.sentences, [start, limit], side="right")
    if last - first >= least:
        return int(document.sentences[last - 1])
    end = word_start(document, limit, limit - start - 1)
    return end if end - start >= least else limit


def divide(document: StoredDocument, start: int, end: int, rng: np.random.Generator) -> int:
    """Any border of sentences inside; without one the border of words nearest to the middle; else the middle."""
    first, last = np.searchsorted(document.sentences, [start + 1, end])
    if last > first:
        return int(document.sentences[rng.integers(first, last)])
    middle = (start + end) // 2
    borders = np.flatnonzero(document.words[start + 1 : end]) + start + 1
    return int(borders[np.abs(borders - middle).argmin()]) if len(borders) else middle
