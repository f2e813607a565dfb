"""Text in, a corpus folder out: compare, merge, tokenise, then the manifest. Every stage maps over parts of the input
and notes what it finished. A build that was killed goes on, and its shards have the bytes of an undisturbed one."""

import errno
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertie.data.build.journal import INPUT, Journal
from bertie.data.build.memory import release_memory
from bertie.data.build.merging import merge, move_kept
from bertie.data.build.options import BuildOptions, Setup, segmenter_for
from bertie.data.build.parts import Work, num_parts, works
from bertie.data.build.pool import Pool
from bertie.data.build.signing import sign
from bertie.data.build.source import Source, text_bytes
from bertie.data.build.tokenising import tokenise
from bertie.data.corpus import Corpus, tokenizer_entry
from bertie.data.manifest import FILE, FileEntry, Layer, Manifest, ShardEntry, added
from bertie.errors import UserError
from bertie.text import sentences
from bertie.text.documents import DocumentOptions, Slice
from bertie.text.tokenizer import Tokenizer

SIGN, TOKENISE = "signatures", "tokens"
TOKENIZER_FOLDER = "tokenizer"
SURELY_SHARED = (
    32 << 20
)  # bytes of text that are work for every worker; a small input may be done sooner than they start
# Of the text in UTF-8; what is kept for `add` must fit in beside the shards. Small corpora may have this much at least.
DISK_SHARE, SMALL = 1.1, 1 << 20


@dataclass(frozen=True)
class Step:
    """Where a build is: for a progress line."""

    stage: str
    num_bytes: int  # of text, in this run
    fraction: float | None  # of the stage's input
    seconds: float  # of this run, in this stage


@dataclass(frozen=True)
class BuildReport:
    folder: Path
    manifest: Manifest  # its last layer is this build's
    seconds: float
    num_bytes: int  # of text that this run tokenised
    resumed: dict[str, int]  # parts that earlier runs had finished, by stage
    notices: tuple[str, ...]  # what was guessed or left out while the sources were opened


def build_corpus(
    folder: str | Path,
    sources: Sequence[str | Path],
    tokenizer: Tokenizer,
    options: BuildOptions | None = None,
    *,
    reading: DocumentOptions | None = None,
    num_workers: int = 1,
    restart: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> BuildReport:
    """Builds a corpus, or goes on with one that was begun with the same input and options."""
    target = Path(folder)
    source = Source(tuple(map(str, sources)), reading)
    run = _Run(target, source, tokenizer, options or BuildOptions(), num_workers, progress)
    with writing(target), Journal(target) as journal:
        if not restart and (target / FILE).exists() and not journal.exists():
            hint = "bertie corpus add puts more text into it; --restart builds it anew"
            raise UserError("there is a finished corpus here already", where=str(target), hint=hint)
        return run.go(journal, restart)


def add_to_corpus(
    folder: str | Path,
    sources: Sequence[str | Path],
    tokenizer: Tokenizer,
    *,
    reading: DocumentOptions | None = None,
    num_workers: int = 1,
    restart: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> BuildReport:
    """Appends documents under the options that the corpus was built with. The corpus stays usable meanwhile."""
    target = Path(folder)
    manifest = Corpus.open(target, tokenizer).manifest
    stored = manifest.layers[0].options if manifest.layers else {}
    source = Source(tuple(map(str, sources)), reading)
    run = _Run(target, source, tokenizer, BuildOptions.parse(stored), num_workers, progress)
    with writing(target), Journal(target) as journal:
        return run.go(journal, restart)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turns a failed write into one sentence. What was finished stays, so that the same command goes on."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        hint = f"{'free some space' if full else 'mend that'} and run the same command: it continues"
        raise UserError(what, where=str(folder), hint=hint) from error


class _Run:
    def __init__(
        self,
        folder: Path,
        source: Source,
        tokenizer: Tokenizer,
        options: BuildOptions,
        num_workers: int,
        progress: Callable[[Step], None] | None,
    ):
        self.folder, self.source, self.tokenizer, self.options = folder, source, tokenizer, options
        self.num_workers, self.progress = num_workers, progress or (lambda step: None)
        self.begun, self.num_bytes = time.monotonic(), 0
        self.slices: list[Slice] = []
        self.notices: list[str] = []

    def go(self, journal: Journal, restart: bool) -> BuildReport:
        before = Manifest.read(self.folder) if (self.folder / FILE).exists() and not restart else None
        tools = self._tools()
        if restart:
            journal.clear()
        with Pool(self.num_workers) as pool:
            if text_bytes(self.source.names) > SURELY_SHARED:
                pool.warm_up()
            # The input is read through before anything old is given up: a mistake in it must not cost a corpus.
            self.slices = self.source.slices(journal.folder / INPUT, self.notices)
            if restart:
                (self.folder / FILE).unlink(missing_ok=True)
            return self._stages(journal, pool, before, tools)

    def _stages(self, journal: Journal, pool: Pool, before: Manifest | None, tools: dict[str, str]) -> BuildReport:
        journal.start(self._settings(tools))
        if journal.done("begin", "layer") is None:
            journal.note("begin", "layer", {"number": len(before.layers) if before else 0})
        layer = int(journal.notes["begin", "layer"]["number"])
        resumed = {stage: len(found) for stage in (SIGN, TOKENISE) if (found := journal.finished(stage))}
        if before is not None and len(before.layers) > layer:  # killed when all was done but the sweeping
            journal.remove()
            return self._report(before, resumed)
        setup = Setup(self.folder, layer, self.folder / TOKENIZER_FOLDER, self.options)
        if not resumed:
            clear_layer(self.folder, layer)
        if before is None:
            self.tokenizer.save(setup.tokenizer_path)
        release_memory()
        pool.limit(num_parts(self.slices))
        numbers: dict[str, int] = {}
        if self.options.compares:
            numbers = self._compare(setup, journal, pool, before.signatures if before else ())
        self._map(TOKENISE, partial(tokenise, setup, numbers), journal, pool)
        for path in self.folder.glob("*.part"):  # of workers that were killed
            path.unlink()
        manifest = self._manifest(setup, journal, tools, before)
        manifest.write(self.folder)
        journal.remove()
        return self._report(manifest, resumed)

    def _tools(self) -> dict[str, str]:
        segmenter = segmenter_for(self.tokenizer, self.options)
        name = "none" if segmenter is None else f"{segmenter.name} {segmenter.version} {segmenter.digest}"
        splitter = f"{sentences.NAME} {sentences.VERSION}" if self.options.sentences else "none"
        return {"segmenter": name, "sentences": splitter}

    def _settings(self, tools: dict[str, str]) -> dict[str, Any]:
        options = self.options.model_dump(mode="json")
        digests: dict[str, list[str]] = {}
        for part in (part for one in self.slices for part in one.parts):
            digests.setdefault(part.shown, []).append(f"{part.start} {part.stop} {part.digest}")
        return {
            "tokenizer": self.tokenizer.digest,
            **tools,
            **{f"--{name}": value for name, value in options.items()},
            "reading": self.source.reading.model_dump(mode="json"),
            **{f"the file {name}": digest_of(found) for name, found in digests.items()},
        }

    def _compare(self, setup: Setup, journal: Journal, pool: Pool, old: Sequence[FileEntry]) -> dict[str, int]:
        """The number under which each part was compared."""
        setup.signatures.mkdir(parents=True, exist_ok=True)
        self._map(SIGN, partial(sign, setup), journal, pool)
        parts = [part for part, _ in journal.finished(SIGN)]
        merge(setup, parts, old, journal, lambda what: self.progress(Step(f"search for {what}", 0, None, 0.0)))
        release_memory()
        return {part: number for number, part in enumerate(parts)}

    def _map(self, stage: str, function: Callable[[Work], dict[str, Any]], journal: Journal, pool: Pool) -> None:
        total = sum(one.size for one in self.slices)
        begun, num_bytes, num_done = time.monotonic(), 0, 0
        for work, facts in pool.run(function, works(self.slices, journal, stage)):
            journal.note(stage, work.key, facts)
            num_bytes += facts["bytes"]
            num_done += work.num_bytes
            self.progress(Step(stage, num_bytes, num_done / total if total else None, time.monotonic() - begun))
        if stage == TOKENISE:
            self.num_bytes = num_bytes

    def _manifest(self, setup: Setup, journal: Journal, tools: dict[str, str], before: Manifest | None) -> Manifest:
        counts: dict[str, int] = {}
        dropped: dict[str, int] = {}
        shards: list[ShardEntry] = []
        for _, facts in journal.finished(TOKENISE):
            counts, dropped = added(counts, facts["counts"]), added(dropped, facts["dropped"])
            if facts["shard"]:
                shards.append(ShardEntry(**facts["shard"]))
        room = max(SMALL, round(DISK_SHARE * counts.get("bytes read", 0)) - sum(shard.num_bytes for shard in shards))
        kept, left_out = move_kept(setup, journal, room)
        if left_out:
            counts["bytes of near signatures not kept"] = left_out
        first = len(before.shards) if before else 0
        options = self.options.model_dump(mode="json")
        layer = Layer(
            sources=self.source.names,
            options=options,
            first_shard=first,
            counts=dict(sorted(counts.items())),
            dropped=dict(sorted(dropped.items())),
        )
        return Manifest(
            tokenizer=tokenizer_entry(self.tokenizer),
            tools=tools,
            counts=dict(sorted(added(before.counts if before else {}, counts).items())),
            dropped=dict(sorted(added(before.dropped if before else {}, dropped).items())),
            layers=(*(before.layers if before else ()), layer),
            shards=(*(before.shards if before else ()), *shards),
            signatures=(*(before.signatures if before else ()), *kept),
        )

    def _report(self, manifest: Manifest, resumed: dict[str, int]) -> BuildReport:
        seconds = time.monotonic() - self.begun
        return BuildReport(self.folder, manifest, seconds, self.num_bytes, resumed, tuple(self.notices))


def clear_layer(folder: Path, layer: int) -> None:
    """Files that a build which was given up left behind."""
    for path in (*folder.glob(f"shard-{layer:02d}-*"), *folder.glob(f"signatures-{layer:02d}-*")):
        path.unlink()


def digest_of(digests: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]
