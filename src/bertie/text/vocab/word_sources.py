"""A list of words, or texts to find words in, in; the words to add to a tokenizer out."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from bertie.errors import InputError
from bertie.progress import progress_line
from bertie.text.documents import DocumentOptions, slices
from bertie.text.files import read_texts
from bertie.text.tokenizer import Tokenizer
from bertie.text.vocab.counting import count_words
from bertie.text.vocab.extension import find_words, word_counting


@dataclass(frozen=True)
class WordSources:
    sources: tuple[str, ...]
    kind: Literal["corpus", "list"]
    num_words: int = 1000
    min_pieces: int = 3
    ram: int = 1_000_000_000
    field: str | None = None

    def read(self, tokenizer: Tokenizer | None, notes: list[str]) -> list[str]:
        """Each word once. `notes` receives what was left out, as sentences."""
        words = self._listed(notes) if self.kind == "list" else self._found(tokenizer, notes)
        if not words:
            what = "the list is empty" if self.kind == "list" else "no word is frequent and split enough to be added"
            raise InputError(what, where=", ".join(self.sources), hint="give other sources, or a lower --min-pieces")
        return words

    def _listed(self, notes: list[str]) -> list[str]:
        words: dict[str, None] = {}
        for source in self.sources:
            with read_texts(source, field=self.field) as records:
                words |= dict.fromkeys(word for record in records if (word := record.text.strip()))
        if len(words) > self.num_words:
            notes.append(f"of {len(words):,} words the first {self.num_words:,} are taken: --count takes more")
        return list(words)[: self.num_words]

    def _found(self, tokenizer: Tokenizer | None, notes: list[str]) -> list[str]:
        counting = word_counting(tokenizer, self.ram)
        with TemporaryDirectory() as spool:
            parts = slices(self.sources, DocumentOptions(field=self.field), spool=Path(spool), notices=notes)
            with progress_line("counting words", len(parts), "slices") as advance:
                counts = count_words(parts, counting, advance)
        if counts.num_pruned:
            notes.append(f"{counts.num_pruned:,} occurrences of rare words were not counted: --ram gives more memory")
        return find_words(tokenizer, counts.words, self.num_words, self.min_pieces)
