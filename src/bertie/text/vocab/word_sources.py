"""Finds the words to add to a tokenizer: those of a list, or those of texts that cost most pieces."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from bertie.errors import InputError
from bertie.reporting.events import OnEvent, ignore, message
from bertie.text.reading.documents import DocumentOptions, slices
from bertie.text.reading.files import read_texts
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.vocab.counting import count_words
from bertie.text.vocab.extension import find_words, word_counting


@dataclass(frozen=True)
class WordSources:
    sources: tuple[str, ...]
    kind: Literal["corpus", "list"]
    num_words: int = 1000
    min_pieces: int = 3
    ram: int = 1_000_000_000
    column: str | None = None

    def read(self, tokenizer: Tokenizer | None, on_event: OnEvent = ignore) -> list[str]:
        """Each word once. Messages name what was left out."""
        words = self._listed(on_event) if self.kind == "list" else self._found(tokenizer, on_event)
        if not words:
            what = "the list is empty" if self.kind == "list" else "no word is frequent and split enough to be added"
            raise InputError(what, where=", ".join(self.sources), hint="give other sources, or a lower `min_pieces`")
        return words

    def _listed(self, on_event: OnEvent) -> list[str]:
        words: dict[str, None] = {}
        for source in self.sources:
            with read_texts(source, column=self.column) as records:
                words |= dict.fromkeys(word for record in records if (word := record.text.strip()))
        if len(words) > self.num_words:
            taken = f"of {len(words):,} words the first {self.num_words:,} are taken"
            on_event(message(f"{taken}: a higher `count` takes more"))
        return list(words)[: self.num_words]

    def _found(self, tokenizer: Tokenizer | None, on_event: OnEvent) -> list[str]:
        counting = word_counting(tokenizer, self.ram)
        with TemporaryDirectory() as spool:
            parts = slices(self.sources, DocumentOptions(column=self.column), spool=Path(spool), on_event=on_event)
            counts = count_words(parts, counting, on_event)
        if counts.num_pruned:
            left_out = f"{counts.num_pruned:,} occurrences of rare words were not counted"
            on_event(message(f"{left_out}: a higher `ram` gives more memory"))
        return find_words(tokenizer, counts.words, self.num_words, self.min_pieces)
