"""Two corpora, of which document i of the one is the translation of document i of the other."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from bertie.data.corpus import Corpus
from bertie.data.manifest import Manifest
from bertie.errors import InputError


@dataclass(frozen=True)
class ParallelCorpus:
    """Properties of the corpus as a whole are those of the first."""

    corpus: Corpus
    translations: Corpus

    def __post_init__(self) -> None:
        """A side that dropped documents may have as many as the other, and yet other ones."""
        for side in (self.corpus, self.translations):
            dropped = {why: count for why, count in side.manifest.dropped.items() if count and "documents" in why}
            if dropped:
                listed = ", ".join(f"{count:,} {why}" for why, count in sorted(dropped.items()))
                raise InputError(
                    f"it was built without some of its documents ({listed}), so they are not beside their translations",
                    where=str(side.folder),
                    hint="build both sides with `document=line`, `keep_duplicates`, `keep_near_duplicates` and "
                    "`paragraphs=off`, from files without empty lines",
                )

    @property
    def folder(self) -> Path:
        return self.corpus.folder

    @property
    def manifest(self) -> Manifest:
        return self.corpus.manifest

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.corpus.digest} {self.translations.digest}".encode()).hexdigest()
