"""A frozen corpus: a folder of samples that were masked once, which training takes in place of a corpus.

`samples.arrow` is what to learn from; `held-out.arrow`, where documents were held out, what to measure on; `tokenizer/`
the tokenizer of both; `checksums.json` the sha256 of each file, its own included. It is written last: a folder without
it is not finished.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertie.batch import Sample
from bertie.data.corpus import file_faults
from bertie.data.frozen import Frozen, write_frozen
from bertie.data.manifest import Entry, FileEntry, entry_of
from bertie.disk import is_sealed, lock_file, sealed, write_file, writing_to
from bertie.errors import FolderError
from bertie.text.tokenizers.tokenizer import Tokenizer

SAMPLES, HELD_OUT, TOKENIZER, CHECKSUMS = "samples.arrow", "held-out.arrow", "tokenizer", "checksums.json"
LOCK = "lock"


class Checksums(Entry):
    files: tuple[FileEntry, ...]


class FrozenCorpus:
    """The samples, once all files were found to have the bytes that were written."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        _check(self.folder)
        self.samples = Frozen(self.folder / SAMPLES)
        self.held_out = Frozen(self.folder / HELD_OUT) if (self.folder / HELD_OUT).exists() else None
        if self.held_out is not None and self.held_out.about != self.about:
            hint = "bertie corpus freeze with `overwrite` writes both again"
            raise FolderError(f"{HELD_OUT} and {SAMPLES} were not made together", where=str(folder), hint=hint)

    @property
    def about(self) -> dict[str, Any]:
        """How the samples were made: objectives, shape, seed, digests of corpus and tokenizer."""
        return self.samples.about

    @property
    def digest(self) -> str:
        """What the samples were made of decides them."""
        facts = json.dumps([self.about, self.samples.num_samples], sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()


def is_frozen(folder: Path) -> bool:
    """Whether there are frozen samples, or what is left of them."""
    return (folder / SAMPLES).exists() or (folder / CHECKSUMS).exists()


def is_finished(folder: Path) -> bool:
    return (folder / CHECKSUMS).exists()


def _check(folder: Path) -> None:
    path = folder / CHECKSUMS
    hint = "freeze the corpus again with `overwrite`"
    try:
        content = path.read_bytes()
        if not is_sealed(content):
            raise ValueError
        facts = {name: value for name, value in json.loads(content).items() if name != "sha256"}
        written = Checksums.model_validate(facts)
    except (OSError, ValueError, RecursionError):  # pydantic's error is a ValueError
        raise FolderError("the checksums are missing or broken", where=str(path), hint=hint) from None
    if broken := [f"{entry.name} {fault}" for entry in written.files for fault in file_faults(folder, entry)]:
        hint = f"{hint}, or restore these files from a copy"
        raise FolderError(f"{len(broken)} broken: {'; '.join(broken)}", where=str(folder), hint=hint)


def is_writable(folder: Path) -> bool:
    """Whether there is nothing else in the folder, so that freezing may write there."""
    if not folder.exists():
        return True
    own = (SAMPLES, HELD_OUT, TOKENIZER, CHECKSUMS, LOCK)
    return folder.is_dir() and all(path.name in own or path in _left_over(folder) for path in folder.iterdir())


def _left_over(folder: Path) -> list[Path]:
    """What a kill left of files that were not finished."""
    return [path for name in (SAMPLES, HELD_OUT, CHECKSUMS) for path in folder.glob(f"{name}.*.part")]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps a second process from freezing into the folder, which is made if needed."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    with lock:
        lock_file(lock, folder)
        yield


def write_frozen_corpus(
    folder: Path,
    samples: Iterable[Sample],
    held_out: Iterable[Sample] | None,
    tokenizer: Tokenizer,
    largest: int,
    about: Mapping[str, Any],
) -> FrozenCorpus:
    """No value of a sample is above `largest`. After a failure the folder is not finished, and may be written again."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*(folder / name for name in (CHECKSUMS, SAMPLES, HELD_OUT)), *_left_over(folder)):
            old.unlink(missing_ok=True)
        tokenizer.save(folder / TOKENIZER)
        if held_out is not None:
            write_frozen(folder / HELD_OUT, held_out, largest, about)
        write_frozen(folder / SAMPLES, samples, largest, about)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / LOCK]
        sums = Checksums(files=tuple(entry_of(path, str(path.relative_to(folder))) for path in files))
        write_file(folder / CHECKSUMS, sealed(sums.model_dump_json(indent=1) + "\n"))
    return FrozenCorpus(folder)


def verify_frozen(folder: Path) -> str:
    """Computes all checksums again. What is broken is raised; else a sentence on what was found."""
    corpus = FrozenCorpus(folder)
    held_out = f" and {corpus.held_out.num_samples:,} held-out ones" if corpus.held_out else ""
    return f"{folder}: {corpus.samples.num_samples:,} frozen samples{held_out} are as they were written"
