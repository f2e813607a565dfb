"""The `manifest.json` of a corpus folder: counts, options, digests and checksums, its own among them. It is written
last and atomically, so that a folder either has a whole corpus or none."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bertie.disk import is_sealed, sealed, write_file
from bertie.errors import FolderError

FILE = "manifest.json"
VERSION = 2
AGAIN = "restore it from a copy, or build the corpus again"
BUILD_FOLDER, JOURNAL = ".build", "journal.jsonl"  # of a build that is not finished
FROZEN = "samples.arrow"  # what a folder of frozen samples has instead


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TokenizerEntry(Entry):
    """Which tokenizer made the ids. A tokenizer of another digest must not read them."""

    digest: str
    kind: str
    size: int
    unk: int | None = None


class FileEntry(Entry):
    """A file of the folder and the checksum of its bytes."""

    name: str
    num_bytes: int
    sha256: str


class ShardEntry(FileEntry):
    num_documents: int
    num_sentences: int
    num_words: int
    num_tokens: int


class Layer(Entry):
    """One `build` or `add`: what it read, under which options, and the first shard of its own."""

    sources: tuple[str, ...]
    options: dict[str, Any]
    first_shard: int
    counts: dict[str, int] = Field(default_factory=dict)
    dropped: dict[str, int] = Field(default_factory=dict)


class Manifest(Entry):
    version: int = VERSION
    tokenizer: TokenizerEntry
    # What split the text, as "name version" or a digest: the segmenter with its dictionary, the sentence splitter.
    tools: dict[str, str] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)  # what was read, changed and kept
    dropped: dict[str, int] = Field(default_factory=dict)  # what is not in the corpus, by reason
    layers: tuple[Layer, ...] = ()
    shards: tuple[ShardEntry, ...] = ()
    signatures: tuple[FileEntry, ...] = ()  # what `add` compares new text with
    tool_files: tuple[FileEntry, ...] = ()  # the corpus's own copy of the tokenizer and of the segmenter's dictionary

    @property
    def num_documents(self) -> int:
        return sum(shard.num_documents for shard in self.shards)

    @property
    def num_sentences(self) -> int:
        return sum(shard.num_sentences for shard in self.shards)

    @property
    def num_words(self) -> int:
        return sum(shard.num_words for shard in self.shards)

    @property
    def num_tokens(self) -> int:
        return sum(shard.num_tokens for shard in self.shards)

    def write(self, folder: Path) -> None:
        write_file(folder / FILE, sealed(self.model_dump_json(indent=1) + "\n"))

    @classmethod
    def read(cls, folder: Path) -> Self:
        path = folder / FILE
        try:
            content = path.read_bytes()
            facts = json.loads(content)
        except FileNotFoundError:
            raise _missing(folder) from None
        except (OSError, ValueError, RecursionError) as error:
            raise FolderError(f"cannot be read ({error})", where=str(path), hint=AGAIN) from None
        intact, version = is_sealed(content), facts.get("version") if isinstance(facts, dict) else None
        if intact is not False and version != VERSION:
            hint = "build the corpus again with this version of bertie"
            raise FolderError(f"is of version {version}, this bertie reads {VERSION}", where=str(path), hint=hint)
        if not intact:
            raise FolderError("was changed after it was written", where=str(path), hint=AGAIN)
        try:
            return cls.model_validate({name: value for name, value in facts.items() if name != "sha256"})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(step) for step in first["loc"])
            raise FolderError(f"{field}: {first['msg']}", where=str(path), hint=AGAIN) from None


def _missing(folder: Path) -> FolderError:
    """What the folder is instead of a corpus."""
    what, hint = f"this is not a corpus: it has no {FILE}", "build one with bertie corpus build"
    if not folder.is_dir():
        what = "no such folder"
    elif (folder / BUILD_FOLDER / JOURNAL).exists():
        what, hint = "the build is not finished", "the same bertie corpus build command continues it"
    elif (folder / FROZEN).exists():
        what, hint = "these are frozen samples, not a corpus", "name the corpus that they were made of"
    return FolderError(what, where=str(folder), hint=hint)


def entry_of(path: Path, name: str) -> FileEntry:
    """The file under the name that it has in the corpus folder. Its bytes are safe on the disk from now on."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return FileEntry(name=name, num_bytes=file.tell(), sha256=found)


def added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Counts of both, key by key, in the order of their first mention."""
    return {key: first.get(key, 0) + second.get(key, 0) for key in dict.fromkeys([*first, *second])}
