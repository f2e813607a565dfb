"""The first stage. Enters: one part of the input. Leaves: the hashes and signatures of its texts, as files."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertie.data.build.memory import release_memory
from bertie.data.build.options import BuildOptions, Setup
from bertie.data.build.parts import Work
from bertie.data.build.repeats import HASHES, PLACES, WHOLE
from bertie.data.duplicates import BAND, MIN_UNITS, NUM_BANDS, exact_hash, shingles, signatures
from bertie.data.manifest import sync_folder, write_whole
from bertie.text.cleaning import Cleaner

BLOCK_CHARACTERS = 250_000  # of text that is compared in one go

DOCUMENTS, PARAGRAPHS = "documents", "paragraphs"


def hashes_path(setup: Setup, part: str, level: str) -> Path:
    return setup.signatures / f"{part}.{level}.npy"


def bands_path(setup: Setup, part: str, level: str) -> Path:
    return setup.signatures / f"{part}.near-{level}.npy"


def places_path(setup: Setup, part: str, level: str) -> Path:
    return setup.signatures / f"{part}.near-{level}-places.npy"


def sign(setup: Setup, work: Work) -> dict[str, int]:
    """Writes the part's files and tells how much text it read."""
    cleaner, signer = Cleaner(setup.options.cleaning), _Signer(setup.options)
    num_bytes = num_documents = 0
    for number, document in enumerate(work.documents()):
        num_bytes += len(document.text.encode("utf-8", "surrogatepass"))
        num_documents += 1
        text = cleaner(document.text)
        if text:
            signer.add(number, text)
    signer.write(setup, work.key)
    release_memory()
    return {"documents": num_documents, "bytes": num_bytes}


class _Signer:
    def __init__(self, options: BuildOptions):
        self.options = options
        self.hashes: dict[str, list[tuple[int, int, int]]] = {DOCUMENTS: [], PARAGRAPHS: []}
        self.places: dict[str, list[np.ndarray]] = {DOCUMENTS: [], PARAGRAPHS: []}
        self.rows: dict[str, list[np.ndarray]] = {DOCUMENTS: [], PARAGRAPHS: []}
        self.block: list[tuple[int, list[str]]] = []
        self.num_waiting = 0

    def add(self, number: int, text: str) -> None:
        options, lines = self.options, text.split("\n")
        if options.duplicates:
            self.hashes[DOCUMENTS].append((exact_hash(text), number, WHOLE))
        if options.paragraphs != "off":
            self.hashes[PARAGRAPHS].extend(
                (exact_hash(line), number, place)
                for place, line in enumerate(lines)
                if len(line) >= options.min_paragraph
            )
        if options.compares_near:
            self.block.append((number, lines))
            self.num_waiting += len(text)
            if self.num_waiting >= BLOCK_CHARACTERS:
                self.flush()

    def flush(self) -> None:
        if not self.block:
            return
        counts = [len(lines) for _, lines in self.block]
        hashes, per_line, units = shingles([line for _, lines in self.block for line in lines])
        begins = np.cumsum([0, *counts[:-1]])
        if self.options.near_duplicates:
            numbers = np.array([number for number, _ in self.block])
            enough = np.add.reduceat(units, begins) >= MIN_UNITS
            found = signatures(hashes, np.add.reduceat(per_line, begins))
            self._keep(DOCUMENTS, found[enough], numbers[enough], np.full(int(enough.sum()), WHOLE))
        if self.options.paragraphs == "near":
            numbers = np.repeat([number for number, _ in self.block], counts)
            within = np.arange(len(units)) - np.repeat(begins, counts)
            long_enough = np.array([len(line) for _, lines in self.block for line in lines])
            enough = (units >= MIN_UNITS) & (long_enough >= self.options.min_paragraph)
            found = signatures(hashes[np.repeat(enough, per_line)], per_line[enough])
            self._keep(PARAGRAPHS, found, numbers[enough], within[enough])
        self.block.clear()
        self.num_waiting = 0

    def _keep(self, level: str, rows: np.ndarray, documents: np.ndarray, paragraphs: np.ndarray) -> None:
        places = np.zeros(len(rows), PLACES)
        places["document"], places["paragraph"] = documents, paragraphs
        self.places[level].append(places)
        self.rows[level].append(rows)

    def write(self, setup: Setup, part: str) -> None:
        self.flush()
        wants_near = {DOCUMENTS: self.options.near_duplicates, PARAGRAPHS: self.options.paragraphs == "near"}
        for level in (DOCUMENTS, PARAGRAPHS):
            hashes = np.array(self.hashes[level], HASHES)
            save(hashes_path(setup, part, level), hashes[np.argsort(hashes["hash"], kind="stable")])
            if not wants_near[level]:
                continue
            save(places_path(setup, part, level), joined(self.places[level], np.zeros(0, PLACES)))
            rows = joined(self.rows[level], np.zeros((0, NUM_BANDS * BAND), np.uint8))[:, : NUM_BANDS * BAND]
            save(bands_path(setup, part, level), as_bands(rows))
        sync_folder(setup.signatures)


def as_bands(rows: np.ndarray) -> np.ndarray:
    """[n, K] -> [NUM_BANDS, n, BAND]"""
    return np.ascontiguousarray(rows.reshape(len(rows), NUM_BANDS, BAND).transpose(1, 0, 2))


def joined(arrays: Sequence[np.ndarray], empty: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays) if arrays else empty


def save(path: Path, array: np.ndarray) -> None:
    content = io.BytesIO()
    np.save(content, array)
    write_whole(path, content.getbuffer(), sync_name=False)
