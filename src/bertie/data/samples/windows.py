"""Makes windows around each word, for static vectors: stretches with `reach` and `sentences`, which `window_pairs`
turns into centres and contexts.

A sample is a whole stretch, since one a centre would cost more to make than to learn from. An objective that leaves out
frequent words drops them from the stretch first, with their `reach` and `sentences`: windows then reach farther.
"""

import numpy as np

from bertie.data.samples.cuts import EvenCuts
from bertie.data.samples.frame import Frame, number_words
from bertie.data.samples.sample_protocols import Arrays, Documents, generator
from bertie.data.shapes import Windows


class WindowSamples:
    shuffled = True

    def __init__(self, shape: Windows, documents: Documents, frame: Frame):
        self.documents, self.reach = documents, shape.reach
        self.longest = shape.length
        self.cuts = EvenCuts(documents.lengths, shape.length)

    @property
    def num_samples(self) -> int:
        return self.cuts.num_stretches

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.cuts.sizes(indices)

    def sample(self, seed: int, epoch: int, index: int) -> Arrays:
        rng = generator(seed, epoch, index, "sample")
        number, part, parts = self.cuts.locate(index)
        document = self.documents.document(number)
        start, end = self.cuts.edges(document, part, parts)
        return {
            "tokens": document.ids[start:end].astype(np.int64),
            "words": number_words(document.words[start:end]),
            "reach": rng.integers(1, self.reach + 1, end - start),
            "sentences": np.searchsorted(document.sentences, np.arange(start, end), side="right") - 1,
        }


def window_pairs(reach: np.ndarray, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[P] centres and [P] contexts, positions in the stretch: all neighbours within a centre's reach and sentence."""
    size = len(reach)
    farthest = int(reach.max(initial=0))
    offsets = np.concatenate([np.arange(-farthest, 0), np.arange(1, farthest + 1)])
    centres = np.repeat(np.arange(size), len(offsets))
    contexts = centres + np.tile(offsets, size)
    inside = (contexts >= 0) & (contexts < size) & (np.abs(contexts - centres) <= reach[centres])
    centres, contexts = centres[inside], contexts[inside]
    together = sentences[centres] == sentences[contexts]
    return centres[together], contexts[together]
