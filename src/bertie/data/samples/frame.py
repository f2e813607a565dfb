"""Turns stretches of text into the fields of a sample: special tokens around them, words and segments numbered."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bertie.data.samples.sample_protocols import Arrays, Stretch
from bertie.errors import SpecError
from bertie.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Frame:
    """The special tokens around one text or two. Without one of them its place is not there."""

    first: int | None = None
    separator: int | None = None
    num_between: int = 1  # separators between two texts
    second_segment: int = 1  # the segment of the second text; 0 where a model tells them apart by separators alone

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """As the tokenizer itself frames texts and pairs."""
        special = tokenizer.special
        pair = tokenizer.encode("", "")
        num_between = int((pair.ids == special.separator).sum()) - 1 if special.separator is not None else 0
        second = int(pair.segments[-1]) if len(pair) else 1
        return cls(special.first, special.separator, max(num_between, 0), second)

    def room(self, length: int, num_texts: int = 1) -> int:
        """Tokens of text that a row of this length can hold."""
        taken = int(self.first is not None) + self._tail(1) + (num_texts - 1) * self._tail(self.num_between)
        if length - taken < 2 * num_texts:
            raise SpecError(f"`max_length={length}` leaves no room beside {taken} special tokens")
        return length - taken

    def wrap(self, stretch: Stretch) -> Arrays:
        return self._join([stretch], [1])[0]

    def wrap_two(self, one: Stretch, two: Stretch) -> Arrays:
        fields, sides = self._join([one, two], [self.num_between, 1])
        return {**fields, "segments": np.where(sides == 1, self.second_segment, 0)}

    def _tail(self, count: int) -> int:
        return count if self.separator is not None else 0

    def _join(self, stretches: list[Stretch], tails: list[int]) -> tuple[Arrays, np.ndarray]:
        """The fields, and the number of the stretch that each token belongs to; a separator belongs to the one before
        it."""
        head = int(self.first is not None)
        ends = [self._tail(count) for count in tails]
        size = head + sum(len(stretch.ids) for stretch in stretches) + sum(ends)
        tokens, words = np.empty(size, np.int64), np.full(size, -1, np.int64)
        sides = np.zeros(size, np.int64)
        if self.first is not None:
            tokens[0] = self.first
        at, num_words = head, 0
        for side, (stretch, tail) in enumerate(zip(stretches, ends, strict=True)):
            end = at + len(stretch.ids)
            tokens[at:end] = stretch.ids
            words[at:end] = number_words(stretch.begins) + num_words
            num_words = int(words[end - 1]) + 1 if end > at else num_words
            if self.separator is not None:
                tokens[end : end + tail] = self.separator
            sides[at : end + tail] = side
            at = end + tail
        return {"tokens": tokens, "words": words}, sides


def number_words(begins: np.ndarray) -> np.ndarray:
    """[n] word numbers from 0. The first token begins a word here, whatever it did in its document."""
    numbers = np.cumsum(begins, dtype=np.int64)
    return numbers - numbers[0] if len(numbers) else numbers
