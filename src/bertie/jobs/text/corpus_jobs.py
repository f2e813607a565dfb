"""The jobs `corpus build`, `corpus add` and `corpus verify`: texts to a corpus on disk."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from bertie.data.build import BuildOptions, BuildReport
from bertie.data.build import add_to_corpus as add_texts
from bertie.data.build import build_corpus as build_from_texts
from bertie.data.build.build_source import slice_bytes
from bertie.data.corpus import Corpus, check_files
from bertie.errors import FolderError, TokenizerError
from bertie.jobs.job import Group, Job, option
from bertie.jobs.options.text_sources import FolderOrObject, ReadingOptions, Sources, to_read
from bertie.jobs.result import Result, Temporary, place_for
from bertie.reporting.events import OnEvent, ignore, warn
from bertie.text.reading.cleaning import Cleaning
from bertie.text.sentences import check_language
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from bertie.data.frozen_corpus import FrozenCorpus  # with torch, for which a build need not wait

TEXT_FILES = "Files, folders or globs: txt, jsonl, csv, tsv, parquet, <doc> files, also gz or zst; - is stdin."
# Counts of a build that are the size of its input: nothing was left out or changed.
READ = ("documents read", "bytes read", "paragraphs")
CLEANING, NEAR_NOT_KEPT = "cleaning: ", "bytes of near signatures not kept"


class SplittingOptions(Group):
    title: ClassVar[str] = "Sentences and words"
    language: str = option(
        "auto", "Language for the sentence splitter: en, zh, ...; auto: by the script of each paragraph.", common=True
    )
    sentences: bool = option(True, "Split paragraphs into sentences.")
    segmenter: Literal["jieba", "spaces", "none"] = option(
        "jieba", "What finds the words of Chinese text: jieba, spaces or none.", metavar="NAME"
    )
    dictionary: Path | None = option(None, "Words for the segmenter, one per line.", metavar="FILE")


class CleaningOptions(Group):
    title: ClassVar[str] = "Cleaning"
    keep_duplicates: bool = option(False, "Keep documents that occurred before.", common=True)
    keep_near_duplicates: bool = option(False, "Keep documents that differ from another in few words.", common=True)
    paragraphs: Literal["off", "exact", "near"] = option(
        "exact", "Drop paragraphs that occurred before: exact copies, near copies too, or off.", metavar="COPIES"
    )
    min_characters: int = option(0, "Leave out documents that are shorter.", ge=0)
    unicode: Literal["nfc", "nfkc", "none"] = option("nfc", "Unicode normalization: nfc, nfkc or none.", metavar="FORM")
    fix_encoding: bool = option(False, "Repair wrongly decoded text with ftfy (slow).")


class BuildCorpusJob(Job):
    """Turn text into a corpus: cleaned, without duplicates, tokenized, on disk.

    Memory does not grow with the text. When it is stopped, or the machine fails, the same command continues.
    """

    verb: ClassVar[str] = "corpus build"
    example: ClassVar[str] = "bertie corpus build texts/*.jsonl --tokenizer my-vocab --out my-corpus"
    sources: Sources = option(help=TEXT_FILES, argument=True, many=True, paths=True)
    tokenizer: FolderOrObject = option(help="A tokenizer's folder or file.", metavar="FOLDER")
    out: Path | None = option(None, "Folder to write.", needed=True, metavar="FOLDER")
    workers: int = option(
        os.cpu_count() or 1, "Processes; the corpus is the same for any number.", common=True, ge=1, le=1024
    )
    restart: bool = option(False, "Replace an unfinished build, or the corpus that is there.", common=True)
    splitting: SplittingOptions = SplittingOptions()
    cleaning: CleaningOptions = CleaningOptions()
    reading: ReadingOptions = ReadingOptions()

    def run(self, on_event: OnEvent = ignore) -> "BuiltCorpus":
        splitting, cleaning = self.splitting, self.cleaning
        options = BuildOptions(
            language=splitting.language if splitting.language == "auto" else check_language(splitting.language),
            sentences=splitting.sentences,
            cleaning=Cleaning(
                unicode=cleaning.unicode,
                min_characters=cleaning.min_characters,
                fix_encoding=cleaning.fix_encoding,
            ),
            duplicates=not cleaning.keep_duplicates,
            near_duplicates=not cleaning.keep_near_duplicates,
            paragraphs=cleaning.paragraphs,
            segmenter=splitting.segmenter,
            dictionary=splitting.dictionary,
        )
        tokenizer = open_tokenizer(self.tokenizer)
        folder, temporary = place_for(self.out, "corpus")
        sources = to_read(self.sources, self.reading.column)
        report = build_from_texts(
            folder,
            sources,
            tokenizer,
            options,
            reading=self.reading.documents().replace(slice_bytes=slice_bytes(sources)),
            num_workers=self.workers,
            restart=self.restart,
            on_event=on_event,
        )
        return BuiltCorpus(report, temporary)


class AddToCorpusJob(Job):
    """Append documents to a corpus, with the options it was built with; what it already has is left out."""

    verb: ClassVar[str] = "corpus add"
    example: ClassVar[str] = "bertie corpus add my-corpus more.jsonl"
    corpus: Path = option(help="A corpus folder.", argument=True)
    sources: Sources = option(help=TEXT_FILES, argument=True, many=True, paths=True)
    tokenizer: FolderOrObject = option(
        None, "Check that this is the corpus's own, which is used anyway.", metavar="FOLDER"
    )
    workers: int = option(
        os.cpu_count() or 1, "Processes; the corpus is the same for any number.", common=True, ge=1, le=1024
    )
    restart: bool = option(False, "Discard an unfinished add instead of continuing it.", common=True)
    reading: ReadingOptions = ReadingOptions()

    def run(self, on_event: OnEvent = ignore) -> "BuiltCorpus":
        Corpus.open(self.corpus)  # a missing corpus has a better message than its missing tokenizer
        tokenizer = open_tokenizer(self.corpus / "tokenizer" if self.tokenizer is None else self.tokenizer)
        sources = to_read(self.sources, self.reading.column)
        report = add_texts(
            self.corpus,
            sources,
            tokenizer,
            reading=self.reading.documents().replace(slice_bytes=slice_bytes(sources)),
            num_workers=self.workers,
            restart=self.restart,
            on_event=on_event,
        )
        return BuiltCorpus(report)


class BuiltCorpus(Result):
    """A corpus on disk: the `corpus`, its `folder`, and a `report` on what was read, left out and changed."""

    def __init__(self, report: BuildReport, temporary: Temporary | None = None):
        self.report, self.folder, self._temporary = report, report.folder, temporary

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus.open(self.folder)

    def to_json(self) -> Any:
        report, manifest = self.report, self.report.manifest
        return {
            "folder": str(report.folder),
            "seconds": report.seconds,
            "resumed": report.resumed,
            **manifest.model_dump(mode="json", exclude={"shards", "signatures"}),
            "num_documents": manifest.num_documents,
            "num_tokens": manifest.num_tokens,
        }

    def parts(self) -> Iterable[str]:
        report, manifest, layer = self.report, self.report.manifest, self.report.manifest.layers[-1]
        for stage, count in report.resumed.items():
            yield f"resumed: {count:,} parts of the stage {stage!r} were done before"
        yield (
            f"{report.folder}: {manifest.num_documents:,} documents, {manifest.num_sentences:,} sentences, "
            f"{manifest.num_words:,} words, {manifest.num_tokens:,} tokens in {len(manifest.shards):,} shards; "
            f"{layer.counts.get('documents read', 0):,} documents read in {report.seconds:.1f} s, "
            f"{report.num_bytes / 1e6 / max(report.seconds, 1e-9):.1f} MB/s"
        )
        yield from _count_lines(layer.counts, layer.dropped)


def _count_lines(counts: Mapping[str, int], dropped: Mapping[str, int]) -> Iterator[str]:
    """All that was left out or changed, so that nothing is silent."""
    for reason, count in dropped.items():
        yield f"left out: {count:,} {reason}"
    for name, count in counts.items():
        if not count or name in READ:
            continue
        if name == NEAR_NOT_KEPT:
            yield f"not kept: {count:,} {name.removesuffix(' not kept')}, which would take too much disk space"
            yield "bertie corpus add will not find near copies of these texts; it still finds exact copies"
        elif name.startswith(CLEANING):
            yield f"cleaning: {count:,} {name.removeprefix(CLEANING).replace('_', ' ')}"
        else:
            yield f"counted: {count:,} {name}"


class VerifyCorpusJob(Job):
    """Check that a corpus is as it was written: all checksums, and the structure of every shard."""

    verb: ClassVar[str] = "corpus verify"
    example: ClassVar[str] = "bertie corpus verify my-corpus"
    corpus: Path = option(help="A corpus folder; a frozen one too.", argument=True)

    def run(self, on_event: OnEvent = ignore) -> "Verified":
        from bertie.data.frozen_corpus import is_frozen, verify_frozen

        if is_frozen(self.corpus):
            return Verified(self.corpus, verify_frozen(self.corpus), {})
        corpus = Corpus.open(self.corpus)
        broken = {entry.name: faults for entry, faults in corpus.verify() if faults}
        if broken:
            listed = "; ".join(f"{name} {faults[0]}" for name, faults in list(broken.items())[:5])
            more = f"; and {len(broken) - 5} more" if len(broken) > 5 else ""
            hint = "build the corpus again, or restore these files from a copy"
            raise FolderError(f"{len(broken)} broken: {listed}{more}", where=str(self.corpus), hint=hint)
        manifest = corpus.manifest
        counts = {
            "shards": len(manifest.shards),
            "documents": manifest.num_documents,
            "tokens": manifest.num_tokens,
        }
        return Verified(
            self.corpus,
            f"{self.corpus}: {counts['shards']:,} shards with {counts['documents']:,} documents and "
            f"{counts['tokens']:,} tokens are as they were written",
            counts,
        )


class Verified(Result):
    def __init__(self, folder: Path, sentence: str, counts: Mapping[str, int]):
        self.folder, self.sentence, self.counts = folder, sentence, counts

    def to_json(self) -> Any:
        return {"folder": str(self.folder), "intact": True, **self.counts}

    def parts(self) -> Iterable[str]:
        yield self.sentence


def open_tokenizer(given: Any) -> Tokenizer:
    """A tokenizer as it is, or that of a path or of an object with a `tokenizer`, like a trained vocabulary."""
    if not isinstance(given, str | Path):
        tokenizer: Tokenizer = getattr(given, "tokenizer", given)
        return tokenizer
    found = load_tokenizer(given)
    if found is None:
        hint = "give a folder with tokenizer.json or vocab.txt; bertie vocab train makes one"
        raise TokenizerError("there is no tokenizer in this folder", where=str(given), hint=hint)
    return found


def open_corpus(folder: Path, tokenizer: Path | None = None) -> tuple[Corpus, Tokenizer]:
    """A corpus with the tokenizer that made it: the folder's own, or the one given."""
    manifest = Corpus.open(folder).manifest  # what is wrong here is reported before what is wrong with the tokenizer
    if tokenizer is None:
        check_files(folder, manifest.tool_files)
    found = find_tokenizer(folder, tokenizer)
    return Corpus.open(folder, found), found


def open_training_corpus(folder: Path, tokenizer: Path | None = None) -> "tuple[Corpus | FrozenCorpus, Tokenizer]":
    """As `open_corpus`, also of a frozen one."""
    from bertie.data.frozen_corpus import FrozenCorpus, is_frozen

    if is_frozen(folder):
        return FrozenCorpus(folder), find_tokenizer(folder, tokenizer)
    return open_corpus(folder, tokenizer)


def find_tokenizer(folder: Path, tokenizer: Path | None = None) -> Tokenizer:
    beside = folder / "tokenizer"
    found = load_tokenizer(tokenizer or (beside if beside.is_dir() else folder))
    if found is None:
        hint = "give the folder of the tokenizer that the corpus was built with as `tokenizer`"
        raise TokenizerError("there is no tokenizer", where=str(tokenizer or folder), hint=hint)
    return found


def build_corpus(
    sources: Any,
    *,
    tokenizer: Any,
    out: str | Path | None = None,
    language: str = "auto",
    sentences: bool = True,
    segmenter: Literal["jieba", "spaces", "none"] = "jieba",
    dictionary: str | Path | None = None,
    keep_duplicates: bool = False,
    keep_near_duplicates: bool = False,
    paragraphs: Literal["off", "exact", "near"] = "exact",
    min_characters: int = 0,
    unicode: Literal["nfc", "nfkc", "none"] = "nfc",
    fix_encoding: bool = False,
    column: str | None = None,
    format: str | None = None,
    document: str | None = None,
    max_line_bytes: int | None = None,
    null_as_empty: bool | None = None,
    encoding: str | None = None,
    workers: int = 1,
    restart: bool = False,
    on_event: OnEvent = warn,
) -> BuiltCorpus:
    """Builds a corpus from texts: paths of files, folders and globs, or an iterable of texts.

    `tokenizer` is a folder, a tokenizer, or what `train_vocab` returns. Without `out` the corpus lives in a temporary
    folder as long as the result.

    >>> texts = [f"Text {number} has a sentence. And one more." for number in range(30)]
    >>> vocab = bertie.train_vocab(texts, size=60)
    >>> built = bertie.build_corpus(texts, tokenizer=vocab, keep_near_duplicates=True)
    >>> built.corpus.num_documents
    30
    """
    job = BuildCorpusJob.of(
        sources=sources,
        tokenizer=tokenizer,
        out=out,
        language=language,
        sentences=sentences,
        segmenter=segmenter,
        dictionary=dictionary,
        keep_duplicates=keep_duplicates,
        keep_near_duplicates=keep_near_duplicates,
        paragraphs=paragraphs,
        min_characters=min_characters,
        unicode=unicode,
        fix_encoding=fix_encoding,
        column=column,
        format=format,
        document=document,
        max_line_bytes=max_line_bytes,
        null_as_empty=null_as_empty,
        encoding=encoding,
        workers=workers,
        restart=restart,
    )
    return job.run(on_event)


def add_to_corpus(
    corpus: str | Path,
    sources: Any,
    *,
    tokenizer: Any = None,
    column: str | None = None,
    format: str | None = None,
    document: str | None = None,
    max_line_bytes: int | None = None,
    null_as_empty: bool | None = None,
    encoding: str | None = None,
    workers: int = 1,
    restart: bool = False,
    on_event: OnEvent = warn,
) -> BuiltCorpus:
    """Appends documents to a corpus, with the options it was built with.

    >>> vocab = bertie.train_vocab(["One text.", "Another text."] * 20, size=60)
    >>> built = bertie.build_corpus(["One text."], tokenizer=vocab)
    >>> bertie.add_to_corpus(built.folder, ["Another text."]).corpus.num_documents
    2
    """
    job = AddToCorpusJob.of(
        corpus=corpus,
        sources=sources,
        tokenizer=tokenizer,
        column=column,
        format=format,
        document=document,
        max_line_bytes=max_line_bytes,
        null_as_empty=null_as_empty,
        encoding=encoding,
        workers=workers,
        restart=restart,
    )
    return job.run(on_event)
