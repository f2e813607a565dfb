"""The first stage: turns one part of the input into files of the hashes and signatures of its texts."""

import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertie.data.build.build_options import BuildOptions, Setup
from bertie.data.build.memory_use import release_all
from bertie.data.build.parts import Work
from bertie.data.build.repeats import HASHES, PLACES, WHOLE
from bertie.data.duplicates import BAND, MIN_UNITS, NUM_BANDS, exact_hash, shingles, signatures
from bertie.disk import sync_folder, write_file
from bertie.text.reading.cleaning import Cleaner

BLOCK_CHARACTERS = 250_000  # of text that is compared in one go

DOCUMENTS, PARAGRAPHS = "documents", "paragraphs"


def hashes_path(setup: Setup, part: str, level: str) -> Path:
    return setup.signatures / f"{part}.{level}.npy"


def bands_path(setup: Setup, part: str, level: str) -> Path:
    return setup.signatures / f"{part}.near-{level}.npy"


def places_path(setup: Setup, part: str, level: str) -> Path:
    return setup.signatures / f"{part}.near-{level}-places.npy"


def sign(setup: Setup, work: Work) -> dict[str, Any]:
    """Writes the part's files, and returns their checksums and how much text it read."""
    cleaner, signer = Cleaner(setup.options.cleaning), _Signer(setup.options)
    num_bytes = num_documents = 0
    for number, document in enumerate(work.documents()):
        num_bytes += len(document.text.encode("utf-8", "surrogatepass"))
        num_documents += 1
        text = cleaner(document.text)
        if text:
            signer.add(number, text)
    files = signer.write(setup, work.key)
    release_all()
    return {"documents": num_documents, "bytes": num_bytes, "checksums": files}


class _Signer:
    def __init__(self, options: BuildOptions):
        self.options = options
        self.hashes: dict[str, list[tuple[int, int, int]]] = {DOCUMENTS: [], PARAGRAPHS: []}
        self.places: dict[str, list[np.ndarray]] = {DOCUMENTS: [], PARAGRAPHS: []}
        self.rows: dict[str, list[np.ndarray]] = {DOCUMENTS: [], PARAGRAPHS: []}
        self.block: list[tuple[int, str]] = []
        self.num_waiting = 0

    def add(self, number: int, text: str) -> None:
        options = self.options
        if options.duplicates:
            self.hashes[DOCUMENTS].append((exact_hash(text), number, WHOLE))
        if options.paragraphs != "off":
            self.hashes[PARAGRAPHS].extend(
                (exact_hash(line), number, place)
                for place, line in enumerate(text.split("\n"))
                if len(line) >= options.min_paragraph
            )
        if options.compares_near:
            self.block.append((number, text))
            self.num_waiting += len(text)
            if self.num_waiting >= BLOCK_CHARACTERS:
                self.flush()

    def flush(self) -> None:
        if self.options.near_duplicates:
            self._sign(DOCUMENTS, [(text, number, WHOLE) for number, text in self.block])
        if self.options.paragraphs == "near":
            lines = (
                (line, number, place)
                for number, text in self.block
                for place, line in enumerate(text.split("\n"))
                if len(line) >= self.options.min_paragraph
            )
            self._sign(PARAGRAPHS, list(lines))
        self.block.clear()
        self.num_waiting = 0

    def _sign(self, level: str, items: Sequence[tuple[str, int, int]]) -> None:
        """Keeps the signatures of texts, each with the numbers of its document and paragraph."""
        hashes, counts, units = shingles([text for text, _, _ in items])
        enough = units >= MIN_UNITS
        places = np.array([(number, place) for _, number, place in items], PLACES)
        self.places[level].append(places[enough])
        self.rows[level].append(signatures(hashes[np.repeat(enough, counts)], counts[enough]))

    def write(self, setup: Setup, part: str) -> dict[str, int]:
        """Returns the checksum of each file."""
        files: dict[str, int] = {}

        def save(path: Path, array: np.ndarray) -> None:
            content = io.BytesIO()
            np.save(content, array)
            write_file(path, content.getbuffer(), sync_name=False)
            files[f"{path.parent.name}/{path.name}"] = zlib.crc32(content.getbuffer())

        self.flush()
        wants_near = {DOCUMENTS: self.options.near_duplicates, PARAGRAPHS: self.options.paragraphs == "near"}
        for level in (DOCUMENTS, PARAGRAPHS):
            hashes = np.array(self.hashes[level], HASHES)
            save(hashes_path(setup, part, level), hashes[np.argsort(hashes["hash"], kind="stable")])
            if not wants_near[level]:
                continue
            save(places_path(setup, part, level), np.concatenate(self.places[level]))
            save(bands_path(setup, part, level), as_bands(np.concatenate(self.rows[level])))
        sync_folder(setup.signatures)
        return files


def as_bands(rows: np.ndarray) -> np.ndarray:
    """[n, K] -> [NUM_BANDS, n, BAND]; the values beyond the last whole band are left."""
    banded = rows[:, : NUM_BANDS * BAND].reshape(len(rows), NUM_BANDS, BAND)
    return np.ascontiguousarray(banded.transpose(1, 0, 2))
