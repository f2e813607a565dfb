"""Makes samples of stretches of single documents. Every token occurs once an epoch."""

import numpy as np

from bertie.data.samples.cuts import EvenCuts
from bertie.data.samples.frame import Frame
from bertie.data.samples.sample_protocols import Arrays, Documents, Stretch
from bertie.data.shapes import Segments


class SegmentSamples:
    shuffled = True

    def __init__(self, shape: Segments, documents: Documents, frame: Frame):
        self.documents, self.frame = documents, frame
        room = frame.room(shape.length)
        self.longest = shape.length
        self.num_special = shape.length - room
        self.cuts = EvenCuts(documents.lengths, room)

    @property
    def num_samples(self) -> int:
        return self.cuts.num_stretches

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.cuts.sizes(indices) + self.num_special

    def sample(self, seed: int, epoch: int, index: int) -> Arrays:
        number, part, parts = self.cuts.locate(index)
        document = self.documents.document(number)
        return self.frame.wrap(Stretch.of(document, *self.cuts.edges(document, part, parts)))
