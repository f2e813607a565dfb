"""The stage between signing and tokenizing: turns the hashes and signatures of all parts, and those of the corpus, into
drops, and into those of what stays, which a later `add` compares with."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertie.data.build.build_options import Setup
from bertie.data.build.journal import Journal, checksum_of
from bertie.data.build.repeats import (
    REASONS,
    DropLog,
    Signed,
    find_exact,
    find_near,
    mapped,
)
from bertie.data.build.signing import DOCUMENTS, PARAGRAPHS, bands_path, hashes_path, places_path
from bertie.data.duplicates import BAND, NUM_BANDS
from bertie.data.manifest import FileEntry, entry_of
from bertie.reporting.events import OnEvent, ignore, progress

STAGE, KEPT = "merge", "kept"


def kept_name(layer: int, level: str, near: bool) -> str:
    """The file of the corpus folder that holds the hashes, or the signatures, of a layer."""
    return f"signatures-{layer:02d}-near-{level}.npy" if near else f"signatures-{layer:02d}-{level}.u64"


def merge(
    setup: Setup, parts: Sequence[str], old: Sequence[FileEntry], journal: Journal, on_event: OnEvent = ignore
) -> None:
    """Documents before paragraphs: what stands in a dropped document is not the first occurrence of anything."""
    options, log = setup.options, DropLog(setup.drops)
    wanted = (options.duplicates, options.near_duplicates, options.paragraphs != "off", options.paragraphs == "near")
    for reason, want in enumerate(wanted):
        if not want or journal.done(STAGE, REASONS[reason]):
            continue
        on_event(progress(f"searching for {REASONS[reason]}", 0, None, ""))
        log.remove(reason)
        level = DOCUMENTS if reason < 2 else PARAGRAPHS
        near = reason in (1, 3)
        target = journal.folder / kept_name(setup.layer, level, near)
        ending = target.name.split("-", 2)[2]
        before = [setup.folder / entry.name for entry in old if entry.name.split("-", 2)[2] == ending]
        if near:
            merge_near(setup, parts, before, log, reason, level, target)
        else:
            find_exact([hashes_path(setup, part, level) for part in parts], before, log, reason, target)
        files = {f"{path.parent.name}/{path.name}": checksum_of(path) for path in [log.path(reason)] if path.exists()}
        journal.note(STAGE, REASONS[reason], {"dropped": log.count(reason), "checksums": files})


def merge_near(
    setup: Setup, parts: Sequence[str], before: Sequence[Path], log: DropLog, reason: int, level: str, target: Path
) -> None:
    signed = [Signed(path, None, np.ones(mapped(path).shape[1], bool)) for path in before]
    for number, part in enumerate(parts):
        places = np.array(mapped(places_path(setup, part, level)))
        drops = log.of_part(number)
        gone = np.isin(places["document"], drops["document"][drops["reason"] < 2])
        if level == PARAGRAPHS:
            exact = drops[drops["reason"] == 2]
            gone |= np.isin(as_numbers(places), as_numbers(exact))
        signed.append(Signed(bands_path(setup, part, level), places_path(setup, part, level), ~gone))
    stays = find_near(signed, len(before), log, reason, setup.signatures / "edges")
    keep_bands(signed[len(before) :], stays[len(before) :], target)


def as_numbers(places: np.ndarray) -> np.ndarray:
    return (places["document"].astype(np.uint64) << np.uint64(32)) | places["paragraph"]


def keep_bands(signed: Sequence[Signed], stays: Sequence[np.ndarray], target: Path) -> None:
    total = sum(int(rows.sum()) for rows in stays)
    shape = (NUM_BANDS, total, BAND)
    if not total:
        np.save(target, np.zeros(shape, np.uint8))
        return
    kept = np.lib.format.open_memmap(target, mode="w+", dtype=np.uint8, shape=shape)
    begin = 0
    for one, rows in zip(signed, stays, strict=True):
        end = begin + int(rows.sum())
        # Mapped again each time: pages that were written count as ours while they are mapped.
        np.lib.format.open_memmap(target, mode="r+")[:, begin:end] = mapped(one.bands)[:, rows]
        begin = end
    kept.flush()


def move_kept(setup: Setup, journal: Journal, room: int) -> tuple[list[FileEntry], int]:
    """Takes what `add` will want into the corpus folder, and tells the bytes that had no room there and were left out.
    Hashes are always kept: they are small.

    What is kept is noted before anything moves, so that a build that was killed here tells the same numbers.
    """
    decided = journal.done(STAGE, KEPT)
    if decided is None:
        entries, left_out = choose_kept(sorted(journal.folder.glob(f"signatures-{setup.layer:02d}-*")), room)
        decided = {"files": [entry.model_dump() for entry in entries], "left out": left_out}
        journal.note(STAGE, KEPT, decided)
    entries = [FileEntry(**entry) for entry in decided["files"]]
    for entry in entries:
        if (made := journal.folder / entry.name).exists():
            made.replace(setup.folder / entry.name)
    return entries, decided["left out"]


def choose_kept(paths: Sequence[Path], room: int) -> tuple[list[FileEntry], int]:
    entries: list[FileEntry] = []
    left_out = 0
    for path in sorted(paths, key=lambda path: path.suffix != ".u64"):
        size = path.stat().st_size
        if path.suffix != ".u64" and size > room:
            left_out += size
            continue
        room -= size
        entries.append(entry_of(path, path.name))
    return entries, left_out
