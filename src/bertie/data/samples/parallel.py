"""Makes rows of a text and its translation, with `languages` and `positions`, from two corpora: document i of the one
is the translation of document i of the other. The longer side is cut first; `num_cut` counts what is lost."""

import numpy as np

from bertie.data.samples.frame import Frame
from bertie.data.samples.sample_protocols import Arrays, Documents, Stretch
from bertie.data.shapes import Parallel
from bertie.errors import InputError


class ParallelSamples:
    shuffled = True

    def __init__(self, shape: Parallel, documents: Documents, translations: Documents, frame: Frame):
        if documents.num_documents != translations.num_documents:
            raise InputError(
                f"one side of the parallel text has {documents.num_documents:,} documents, the other "
                f"{translations.num_documents:,}",
                hint="build both with one document a line, from files of as many lines, without dropping any",
            )
        self.documents, self.translations, self.frame = documents, translations, frame
        self.longest = shape.length
        self.room = frame.room(shape.length, num_texts=2)
        self.pairs = np.flatnonzero((documents.lengths > 0) & (translations.lengths > 0))
        self.num_left_out = documents.num_documents - len(self.pairs)  # one side or both are empty
        full = (documents.lengths + translations.lengths)[self.pairs]
        self.num_cut = int(np.maximum(full - self.room, 0).sum())  # tokens
        self.num_cut_rows = int((full > self.room).sum())

    @property
    def num_samples(self) -> int:
        return len(self.pairs)

    @property
    def losses(self) -> list[str]:
        """What of the text is in no row, in sentences."""
        found = []
        if self.num_left_out:
            of = f"of {self.documents.num_documents:,} texts"
            found.append(f"{self.num_left_out:,} {of} are left out, as they or their translations are empty")
        if self.num_cut_rows:
            rows = f"{self.num_cut_rows:,} of {self.num_samples:,} rows"
            found.append(f"{rows} are cut to {self.longest:,} tokens: {self.num_cut:,} tokens are never seen")
        return found

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        numbers = self.pairs[indices]
        full = self.documents.lengths[numbers].astype(np.int64) + self.translations.lengths[numbers]
        return np.minimum(full, self.room) + self.longest - self.room

    def sample(self, seed: int, epoch: int, index: int) -> Arrays:
        number = int(self.pairs[index])
        one, two = self.documents.document(number), self.translations.document(number)
        # Half of the room is each side's own; what the shorter leaves over is the longer's.
        half = self.room // 2
        first = min(len(one.ids), max(self.room - len(two.ids), half))
        second = min(len(two.ids), self.room - first)
        fields = self.frame.wrap_two(Stretch.of(one, 0, first), Stretch.of(two, 0, second))
        del fields["segments"]
        languages = np.zeros(len(fields["tokens"]), np.int64)
        begin = len(languages) - second - int(self.frame.separator is not None)
        languages[begin:] = 1
        positions = np.arange(len(languages))
        positions[begin:] -= begin
        return {**fields, "languages": languages, "positions": positions}
