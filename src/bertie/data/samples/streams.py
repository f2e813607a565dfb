"""Turns documents into persistent streams: each row continues where the row before it in its stream ended.

The corpus is one circle of tokens. Stream b starts at its own place on the circle and never ends, over the ends
of epochs too, so that a memory is never stale. The order is the corpus's own: the seed changes nothing.
"""

import numpy as np

from bertie.data.samples.frame import Frame
from bertie.data.samples.joined import JoinedDocuments, JoinedRange
from bertie.data.samples.sample_protocols import Arrays, Documents
from bertie.data.shapes import Streams
from bertie.errors import InputError


class StreamSamples:
    shuffled = False

    def __init__(self, shape: Streams, documents: Documents, frame: Frame):
        self.longest = shape.length
        self.num_streams = shape.num_streams
        self.joined = JoinedDocuments(documents, frame.separator)
        if self.joined.total == 0:
            raise InputError("the corpus has no token, so there is no stream in it")
        self.steps = -(-self.joined.total // (self.num_streams * self.longest))  # of an epoch
        self.num_samples = self.steps * self.num_streams

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.full(len(indices), self.longest, np.int64)

    def sample(self, seed: int, epoch: int, index: int) -> Arrays:
        step, stream = divmod(index, self.num_streams)
        origin = stream * self.joined.total // self.num_streams
        found = self._read(origin + (epoch * self.steps + step) * self.longest, self.longest + 1)
        return {
            "tokens": found.ids[:-1],
            "words": found.word_numbers()[:-1],
            "documents": found.documents[:-1],
            "following": np.asarray(found.ids[-1]),
        }

    def _read(self, position: int, size: int) -> JoinedRange:
        parts, position = [], position % self.joined.total
        while size:
            end = min(position + size, self.joined.total)
            parts.append(self.joined.read(position, end))
            size, position = size - (end - position), 0
        return parts[0] if len(parts) == 1 else JoinedRange(*map(np.concatenate, zip(*parts, strict=True)))
