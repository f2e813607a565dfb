"""A frozen corpus: samples that were masked once enter, a folder leaves that training takes in the place of a corpus.

`samples.arrow` is what to learn from; `held-out.arrow`, where documents were held out, what to measure on; `tokenizer/`
the tokenizer of both. The samples are written last: a folder without them is not finished.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertie.batch import Sample
from bertie.data.frozen import Frozen, write_frozen
from bertie.errors import FolderError
from bertie.text.tokenizer import Tokenizer

SAMPLES, HELD_OUT, TOKENIZER = "samples.arrow", "held-out.arrow", "tokenizer"


class FrozenCorpus:
    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.samples = Frozen(self.folder / SAMPLES)
        self.held_out = Frozen(self.folder / HELD_OUT) if (self.folder / HELD_OUT).exists() else None
        if self.held_out is not None and self.held_out.about != self.about:
            hint = "the same bertie corpus freeze command with --overwrite writes both again"
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
    return (folder / SAMPLES).exists()


def is_writable(folder: Path) -> bool:
    """Whether there is nothing else in the folder, so that freezing may write there."""
    if not folder.exists():
        return True
    own = (SAMPLES, HELD_OUT, TOKENIZER)
    return folder.is_dir() and all(path.name in own or path.suffix == ".part" for path in folder.iterdir())


def write_frozen_corpus(
    folder: Path,
    samples: Iterable[Sample],
    held_out: Iterable[Sample] | None,
    tokenizer: Tokenizer,
    largest: int,
    about: Mapping[str, Any],
) -> FrozenCorpus:
    """No value of a sample is above `largest`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder / TOKENIZER)
    if held_out is None:
        (folder / HELD_OUT).unlink(missing_ok=True)
    else:
        write_frozen(folder / HELD_OUT, held_out, largest, about)
    write_frozen(folder / SAMPLES, samples, largest, about)
    return FrozenCorpus(folder)
