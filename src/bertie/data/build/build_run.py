"""Turns text into a corpus folder: compare, merge, tokenize, then the manifest. Every stage maps over parts of the
input and notes what it finished. A build that was killed continues, and its shards have the bytes of an undisturbed
one.

Until the manifest is written, atomically and last, a corpus that was there before is as it was, also under `restart`.
Files that the manifest does not name are swept away then.

A build continues only with the input that it was started with. An input that was found wrong may be fixed: what was
made of slices that are as before is kept, the rest is made again; where nothing was finished yet, nothing is
remembered.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from bertie.data.build.build_options import BuildOptions, Setup
from bertie.data.build.build_source import Source, text_bytes
from bertie.data.build.journal import INPUT, WRONG, Journal
from bertie.data.build.memory_use import release_all
from bertie.data.build.merging import merge, move_kept
from bertie.data.build.parts import Work, num_parts, works
from bertie.data.build.pool import Pool
from bertie.data.build.signing import sign
from bertie.data.build.sweeping import check_target, next_layer, sweep
from bertie.data.build.tokenising import load_tools, tokenise
from bertie.data.build.tools import FOLDER, check_tools, move_tools, save_tools, tools_of, with_copy
from bertie.data.corpus import Corpus, check_files, tokenizer_entry
from bertie.data.manifest import FILE, FileEntry, Layer, Manifest, ShardEntry, added
from bertie.disk import sha256_of, writing_to
from bertie.errors import InputError, UserError
from bertie.reporting.events import OnEvent, ignore, progress
from bertie.text.reading.documents import DocumentOptions, Slice, Sources
from bertie.text.reading.lines import STANDARD_INPUT
from bertie.text.tokenizers.tokenizer import Tokenizer

BEGIN, SIGN, TOKENISE = "begin", "signatures", "tokens"
STAGES = {SIGN: "computing signatures", TOKENISE: "tokenizing"}  # as people read them
AGAIN = "run it again: it continues"
SURELY_SHARED = (
    32 << 20
)  # bytes of text that are work for every worker; a small input may be done sooner than they start
# Of the text in UTF-8; what is kept for `add` must fit in beside the shards. Small corpora may have this much at least.
DISK_SHARE, SMALL = 1.1, 1 << 20


@dataclass(frozen=True)
class BuildReport:
    folder: Path
    manifest: Manifest  # its last layer is this build's
    seconds: float
    num_bytes: int  # of text that this run tokenised
    resumed: dict[str, int]  # parts that earlier runs had finished, by stage


def build_corpus(
    folder: str | Path,
    sources: Sources,
    tokenizer: Tokenizer,
    options: BuildOptions | None = None,
    *,
    reading: DocumentOptions | None = None,
    num_workers: int = 1,
    restart: bool = False,
    on_event: OnEvent = ignore,
) -> BuildReport:
    """Builds a corpus, or continues one that was started with the same input and options."""
    target = Path(folder)
    source = Source(sources, reading)
    run = _Run(target, source, tokenizer, options or BuildOptions(), num_workers, on_event)
    with writing_to(target, AGAIN):
        check_target(target)
    with writing_to(target, AGAIN), Journal(target) as journal:
        if not restart and (target / FILE).exists() and not journal.exists():
            hint = "bertie corpus add puts more text into it; `restart` builds it again"
            raise UserError("there is a finished corpus here already", where=str(target), hint=hint)
        return run.run(journal, None, restart)


def add_to_corpus(
    folder: str | Path,
    sources: Sources,
    tokenizer: Tokenizer,
    *,
    reading: DocumentOptions | None = None,
    num_workers: int = 1,
    restart: bool = False,
    on_event: OnEvent = ignore,
) -> BuildReport:
    """Appends documents under the options that the corpus was built with. The corpus stays usable meanwhile."""
    target = Path(folder)
    # Mistakes are reported before the folder is touched.
    manifest = Corpus.open(target, tokenizer).manifest
    check_files(target, manifest.shards, bytes_too=False)  # they are not read
    check_files(target, manifest.signatures)
    source = Source(sources, reading)
    with writing_to(target, AGAIN), Journal(target) as journal:
        before = Manifest.read(target)
        options = with_copy(BuildOptions.parse(before.layers[0].options if before.layers else {}), target)
        run = _Run(target, source, tokenizer, options, num_workers, on_event)
        check_tools(before, run.tools, target)
        return run.run(journal, before, restart)


class _Run:
    def __init__(
        self,
        folder: Path,
        source: Source,
        tokenizer: Tokenizer,
        options: BuildOptions,
        num_workers: int,
        on_event: OnEvent,
    ):
        self.folder, self.source, self.tokenizer, self.options = folder, source, tokenizer, options
        self.num_workers, self.on_event = num_workers, on_event
        self.tools = tools_of(options)
        self.begun, self.num_bytes = time.monotonic(), 0
        self.slices: list[Slice] = []

    def run(self, journal: Journal, before: Manifest | None, restart: bool) -> BuildReport:
        """`before` is the corpus to add to."""
        if restart:
            journal.clear()
        load_tools.cache_clear()  # of an earlier build of this process
        try:
            with Pool(self.num_workers) as pool:
                if text_bytes(self.source.sources) > SURELY_SHARED:
                    pool.warm_up()
                self.slices = self.source.slices(journal.folder / INPUT, self.on_event)
                return self._stages(journal, pool, before)
        except UserError as error:
            self._allow_input_fix(journal, error)
            raise

    def _allow_input_fix(self, journal: Journal, error: UserError) -> None:
        """Nothing may be in the way once the user has fixed the input."""
        is_begun = journal.finished(SIGN) or journal.finished(TOKENISE)
        if journal.is_open and not is_begun:
            journal.clear()
            sweep(self.folder)
        elif journal.is_open and isinstance(error, InputError):
            journal.note(*WRONG, {})
            then = "then run it again: it continues"
            error.hint = f"{error.hint}; {then}" if error.hint else then

    def _stages(self, journal: Journal, pool: Pool, before: Manifest | None) -> BuildReport:
        journal.start(self._settings(before), self._input(), self._still_valid)
        resumed = {stage: len(found) for stage in (SIGN, TOKENISE) if (found := journal.finished(stage))}
        here = sha256_of(self.folder / FILE) if (self.folder / FILE).exists() else None
        if journal.done(BEGIN, "layer") is None:
            sweep(self.folder)
            journal.note(BEGIN, "layer", {"number": next_layer(self.folder), "manifest": here})
        begin = journal.notes[BEGIN, "layer"]
        if begin["manifest"] != here:  # killed when all was done but the sweeping
            return self._finish(journal, Manifest.read(self.folder), resumed)
        journal.check_files()
        save_tools(journal.folder, self.tokenizer, self.options)
        options = with_copy(self.options, journal.folder)
        setup = Setup(self.folder, int(begin["number"]), journal.folder / FOLDER, options)
        release_all()
        pool.limit(num_parts(self.slices))
        numbers: dict[str, int] = {}
        if options.finds_duplicates:
            numbers = self._compare(setup, journal, pool, before.signatures if before else ())
        self._map(TOKENISE, partial(tokenise, setup, numbers), journal, pool)
        manifest = self._manifest(setup, journal, before)
        manifest.write(self.folder)
        return self._finish(journal, manifest, resumed)

    def _finish(self, journal: Journal, manifest: Manifest, resumed: dict[str, int]) -> BuildReport:
        sweep(self.folder)
        journal.remove()
        seconds = time.monotonic() - self.begun
        return BuildReport(self.folder, manifest, seconds, self.num_bytes, resumed)

    def _settings(self, before: Manifest | None) -> dict[str, Any]:
        options = self.options.model_dump(mode="json", exclude={"dictionary"})  # whose digest is among the tools
        cleaning = options.pop("cleaning")
        return {
            "the command": "bertie corpus build" if before is None else "bertie corpus add",
            "tokenizer": self.tokenizer.digest,
            **self.tools,
            "`keep_duplicates`": not options.pop("duplicates"),
            "`keep_near_duplicates`": not options.pop("near_duplicates"),
            **{f"`{name}`": value for name, value in options.items()},
            **{f"`{name}`": value for name, value in cleaning.items()},
        }

    def _input(self) -> dict[str, Any]:
        digests: dict[str, list[str]] = {}
        for part in (part for one in self.slices for part in one.parts):
            digests.setdefault(part.shown, []).append(f"{part.start} {part.stop} {part.digest}")
        return {
            "reading": self.source.reading.model_dump(mode="json"),
            **{
                name if name == STANDARD_INPUT else f"the file {name}": digest_of(found)
                for name, found in digests.items()
            },
            "the order of the files": digest_of(list(digests)),
        }

    def _still_valid(self, stage: str, part: str, facts: Mapping[str, Any]) -> bool:
        """Whether a note is still true of a fixed input: of the first stage where its slice is as it was. What comes
        later depends on all slices."""
        if stage != (SIGN if self.options.finds_duplicates else TOKENISE):
            return stage == BEGIN
        number = slice_number(part)
        return number < len(self.slices) and facts["slice"] == self.slices[number].digest

    def _compare(self, setup: Setup, journal: Journal, pool: Pool, old: Sequence[FileEntry]) -> dict[str, int]:
        """The number under which each part was compared."""
        setup.signatures.mkdir(parents=True, exist_ok=True)
        self._map(SIGN, partial(sign, setup), journal, pool)
        parts = [part for part, _ in journal.finished(SIGN)]
        merge(setup, parts, old, journal, self.on_event)
        release_all()
        return {part: number for number, part in enumerate(parts)}

    def _map(self, stage: str, function: Callable[[Work], dict[str, Any]], journal: Journal, pool: Pool) -> None:
        total = sum(one.size for one in self.slices)
        before = sum(facts["bytes"] for _, facts in journal.finished(stage))  # by earlier runs
        num_bytes = num_done = 0
        self._report(stage, before, total)
        for work, facts in pool.run(function, works(self.slices, journal, stage)):
            journal.note(stage, work.key, {**facts, "slice": self.slices[slice_number(work.key)].digest})
            num_bytes += facts["bytes"]
            num_done += work.num_bytes
            self._report(stage, before + num_done, total)
        if stage == TOKENISE:
            self.num_bytes = num_bytes

    def _report(self, stage: str, done: int, total: int) -> None:
        fraction = min(1.0, done / total) if total else 1.0
        megabytes = (round(done / 1e6), round(total / 1e6))
        self.on_event(progress(STAGES[stage], *megabytes, "MB", fraction=fraction))

    def _manifest(self, setup: Setup, journal: Journal, before: Manifest | None) -> Manifest:
        counts: dict[str, int] = {}
        dropped: dict[str, int] = {}
        shards: list[ShardEntry] = []
        for _, facts in journal.finished(TOKENISE):
            counts, dropped = added(counts, facts["counts"]), added(dropped, facts["dropped"])
            if facts["shard"]:
                shards.append(ShardEntry(**facts["shard"]))
        if not counts.get("documents read") or not (shards or before):
            journal.clear()  # there is nothing to continue
            self._refuse_empty(counts.get("documents read", 0), dropped)
        room = max(SMALL, round(DISK_SHARE * counts["bytes read"]) - sum(shard.num_bytes for shard in shards))
        kept, left_out = move_kept(setup, journal, room)
        if left_out:
            counts["bytes of near signatures not kept"] = left_out
        old = before or Manifest(
            tokenizer=tokenizer_entry(self.tokenizer),
            tools=self.tools,
            tool_files=tuple(move_tools(journal.folder, self.folder)),
        )
        layer = Layer(
            sources=self.source.names,
            options=old.layers[0].options if old.layers else self.options.model_dump(mode="json"),
            first_shard=len(old.shards),
            counts=dict(sorted(counts.items())),
            dropped=dict(sorted(dropped.items())),
        )
        return old.model_copy(
            update={
                "counts": dict(sorted(added(old.counts, counts).items())),
                "dropped": dict(sorted(added(old.dropped, dropped).items())),
                "layers": (*old.layers, layer),
                "shards": (*old.shards, *shards),
                "signatures": (*old.signatures, *kept),
            }
        )

    def _refuse_empty(self, num_documents: int, dropped: Mapping[str, int]) -> NoReturn:
        names = self.source.names
        where = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        if not num_documents:
            raise InputError("there is no document in the input", where=where, hint="give files with text")
        listed = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
        what = f"of {num_documents:,} documents none is left ({listed})"
        raise InputError(what, where=where, hint="give other text, or a lower `min_characters`")


def slice_number(part: str) -> int:
    return int(part.split("-")[0])


def digest_of(digests: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]
