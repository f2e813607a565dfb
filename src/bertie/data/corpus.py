"""Reads the documents of a corpus folder by number, without loading the rest.

The bytes of a shard are compared with its checksum when it is first opened: damaged text is refused, not learned.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Self

import numpy as np

from bertie.data.manifest import BUILD_FOLDER, JOURNAL, FileEntry, Manifest, ShardEntry, TokenizerEntry
from bertie.data.shards import Block, CorpusDocument, Shard, offsets_of, write_shard
from bertie.errors import FolderError
from bertie.text.tokenizers.tokenizer import Tokenizer

# Every open shard holds a file handle, and a process has some 1,000 of them.
OPEN_SHARDS = 256


class Corpus:
    """Documents of tokens, numbered in the order of the sources."""

    def __init__(self, folder: Path, manifest: Manifest):
        self.folder, self.manifest = folder, manifest
        self._begins = offsets_of(np.array([entry.num_documents for entry in manifest.shards], dtype=np.int64))
        self._open = lru_cache(maxsize=OPEN_SHARDS)(self._open_shard)
        self._checked: set[int] = set()  # shards whose bytes are those that were written

    @classmethod
    def open(cls, folder: str | Path, tokenizer: Tokenizer | None = None) -> Self:
        """Give the tokenizer that is to read the ids: one that did not make them is refused."""
        manifest = Manifest.read(Path(folder))
        if tokenizer is not None:
            check_tokenizer(manifest.tokenizer, tokenizer, str(folder))
        return cls(Path(folder), manifest)

    def __getstate__(self) -> tuple[Path, Manifest]:
        return self.folder, self.manifest

    def __setstate__(self, state: tuple[Path, Manifest]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def _open_shard(self, number: int) -> Shard:
        entry = self.manifest.shards[number]
        if number not in self._checked:
            check_files(self.folder, [entry])
            self._checked.add(number)
        return Shard(self.folder / entry.name)

    @property
    def num_documents(self) -> int:
        return int(self._begins[-1])

    def __len__(self) -> int:
        return self.num_documents

    @property
    def num_tokens(self) -> int:
        return self.manifest.num_tokens

    @property
    def digest(self) -> str:
        """Of the bytes of all shards, in their order."""
        return hashlib.sha256("\n".join(shard.sha256 for shard in self.manifest.shards).encode()).hexdigest()

    @cached_property
    def lengths(self) -> np.ndarray:
        """[documents] int64, tokens of each document."""
        rows = [self._open(number).lengths for number in range(len(self.manifest.shards))]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)

    @cached_property
    def sentence_counts(self) -> np.ndarray:
        """[documents] int64, sentences of each document."""
        rows = [self._open(number).sentence_counts for number in range(len(self.manifest.shards))]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)

    def document(self, number: int) -> CorpusDocument:
        if not 0 <= number < self.num_documents:
            raise IndexError(f"document {number} of a corpus of {self.num_documents:,}")
        shard = int(np.searchsorted(self._begins, number, side="right")) - 1
        return self._open(shard).document(number - int(self._begins[shard]))

    def __iter__(self) -> Iterator[CorpusDocument]:
        for number in range(len(self.manifest.shards)):
            yield from self._open(number)

    def verify(self) -> Iterator[tuple[FileEntry, list[str]]]:
        """Each file of the folder in turn with what is wrong with it; [] where all is well."""
        for number, entry in enumerate(self.manifest.shards):
            faults = file_faults(self.folder, entry)
            if not faults:
                self._checked.add(number)
                shard = self._open_shard(number)
                if shard.num_documents != entry.num_documents:
                    faults = [f"has {shard.num_documents:,} documents, the manifest says {entry.num_documents:,}"]
                faults += shard.faults(self.manifest.tokenizer.size)
            yield entry, faults
        for file in (*self.manifest.tool_files, *self.manifest.signatures):
            yield file, file_faults(self.folder, file)


def check_files(folder: Path, entries: Iterable[FileEntry], bytes_too: bool = True) -> None:
    """Refuses files that are missing or have other bytes than were written; without `bytes_too` only another size."""
    for entry in entries:
        for fault in file_faults(folder, entry, bytes_too):
            hint = "restore it from a copy, or build the corpus again; bertie corpus verify looks at all files"
            raise FolderError(f"{entry.name} {fault}", where=str(folder), hint=hint)


def file_faults(folder: Path, entry: FileEntry, bytes_too: bool = True) -> list[str]:
    """Whether the file has the bytes that were written."""
    path = folder / entry.name
    try:
        if not path.is_file():  # a pipe would never end
            return ["is not a file" if path.exists() else "is missing"]
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry.num_bytes:
                return [f"has {size:,} bytes, {entry.num_bytes:,} were written"]
            found = hashlib.file_digest(file, "sha256").hexdigest() if bytes_too else entry.sha256
    except OSError as error:
        return [f"cannot be read ({error.strerror})"]
    if found != entry.sha256:
        return [f"has other bytes than were written: sha256 is {found}, was {entry.sha256}"]
    return []


def check_tokenizer(entry: TokenizerEntry, tokenizer: Tokenizer, where: str) -> None:
    if tokenizer.digest != entry.digest:
        hint = "use that tokenizer, or build the corpus again with this one"
        if (Path(where) / BUILD_FOLDER / JOURNAL).exists():  # it may have put its tokenizer in place already
            hint = f"{hint}; a build was stopped here: run it again to finish it"
        raise FolderError(
            f"the corpus was made with the tokenizer {entry.digest} ({entry.kind}, {entry.size:,} ids), "
            f"this one is {tokenizer.digest} ({tokenizer.kind}, {tokenizer.size:,} ids)",
            where=where,
            hint=hint,
        )


def tokenizer_entry(tokenizer: Tokenizer) -> TokenizerEntry:
    return TokenizerEntry(digest=tokenizer.digest, kind=tokenizer.kind, size=tokenizer.size, unk=tokenizer.special.unk)


def shard_name(layer: int, part: str) -> str:
    return f"shard-{layer:02d}-{part}.arrow"


def write_shards(
    folder: str | Path,
    documents: Iterable[CorpusDocument],
    tokenizer: Tokenizer | TokenizerEntry,
    per_shard: int = 1000,
) -> Corpus:
    """Documents that are tokens already as a corpus folder, in one go; the way of text is `build_corpus`."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    entry = tokenizer if isinstance(tokenizer, TokenizerEntry) else tokenizer_entry(tokenizer)
    shards: list[ShardEntry] = []
    waiting: list[CorpusDocument] = []

    def flush() -> None:
        if waiting:
            shards.append(write_shard(target / shard_name(0, f"{len(shards):06d}"), [Block.of(waiting)], entry.size))
            waiting.clear()

    for document in documents:
        waiting.append(document)
        if len(waiting) == per_shard:
            flush()
    flush()
    Manifest(tokenizer=entry, shards=tuple(shards)).write(target)
    return Corpus.open(target)
