"""`bertie corpus`: text enters, a corpus folder leaves. Progress goes to stderr, what was done to stdout."""

import json
import os
from pathlib import Path
from typing import Any, Literal

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from bertie.cli.app import LazyCommand, LazyGroup, Verb, console, example
from bertie.cli.corpus_counts import count_lines
from bertie.data.build import BuildOptions, BuildReport, Step, add_to_corpus, build_corpus
from bertie.data.build.source import slice_bytes
from bertie.data.corpus import Corpus
from bertie.errors import FolderError, TokenizerError
from bertie.text.cleaning import Cleaning
from bertie.text.documents import Boundary, DocumentOptions, Format
from bertie.text.lines import MAX_LINE_BYTES
from bertie.text.sentences import check_language
from bertie.text.tokenizer import Tokenizer, load_tokenizer

# Imported when called: some load torch, and a build counts every megabyte.
VIEWS = {
    "report": Verb(
        "bertie.cli.corpus_report:report",
        "Tell what a corpus is like.",
        "bertie corpus report my-corpus --html report.html",
    ),
    "show": Verb(
        "bertie.cli.corpus_show:show",
        "Print a document with its sentences, words and pieces.",
        "bertie corpus show my-corpus 0 --mask whole-word",
    ),
    "freeze": Verb(
        "bertie.cli.corpus_freeze:freeze",
        "Write static masks.",
        "bertie corpus freeze my-corpus --recipe bert --out my-masks",
    ),
}


class CorpusGroup(LazyGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *VIEWS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return LazyCommand(cmd_name, VIEWS[cmd_name]) if cmd_name in VIEWS else super().get_command(ctx, cmd_name)


corpus = typer.Typer(cls=CorpusGroup, no_args_is_help=True, rich_markup_mode=None)

BAR_STEPS = 10_000

SOURCES = typer.Argument(
    help="Files, folders or globs: txt, jsonl, csv, tsv, parquet, <doc> files, gz, zst; - is stdin."
)
WORKERS = typer.Option(os.cpu_count() or 1, min=1, help="Processes; the corpus is the same for any number.")
FIELD = typer.Option(None, help="The JSON field or the column of the texts; 'text' when not given.")
FORMAT = typer.Option(None, help="Replaces what the files' endings say.")
DOCUMENT = typer.Option("blank-line", help="What ends a document in a txt file.")
LINE = typer.Option(MAX_LINE_BYTES, min=1, help="A longer line is an error.")
NULLS = typer.Option(False, "--null-as-empty", help="A null counts as an empty text.")
RESTART = typer.Option(False, "--restart", help="Forget an unfinished build, or the corpus that is here.")
AS_JSON = typer.Option(False, "--json", help="Print the report as one JSON object.")


@corpus.command("build", epilog=example("bertie corpus build texts/*.jsonl --tokenizer my-vocab --out my-corpus"))
def build(
    sources: list[str] = SOURCES,
    tokenizer: Path = typer.Option(help="A tokenizer's folder or file."),
    out: Path = typer.Option(help="The folder to make."),
    language: str = typer.Option(
        "auto", help="For the sentence splitter: en, zh, ...; auto: by each paragraph's script."
    ),
    sentences: bool = typer.Option(True, help="Split sentences; else a paragraph is one."),
    duplicates: bool = typer.Option(True, help="Leave out documents that were there before."),
    near_duplicates: bool = typer.Option(True, help="Leave out documents that differ from another in few words."),
    paragraphs: Literal["off", "exact", "near"] = typer.Option("exact", help="Leave out paragraphs that were there."),
    segmenter: Literal["jieba", "spaces", "none"] = typer.Option("jieba", help="What finds the words of Chinese text."),
    dictionary: Path | None = typer.Option(None, help="Words for the segmenter, one a line."),
    min_length: int = typer.Option(0, min=0, help="Characters of a document at least."),
    normalise: Literal["nfc", "nfkc", "none"] = typer.Option("nfc", help="Unicode normalisation."),
    mend_encoding: bool = typer.Option(False, "--mend-encoding", help="Undo wrongly decoded text with ftfy (slow)."),
    workers: int = WORKERS,
    field: str | None = FIELD,
    format: Format | None = FORMAT,
    document: Boundary = DOCUMENT,
    max_line_bytes: int = LINE,
    null_as_empty: bool = NULLS,
    restart: bool = RESTART,
    as_json: bool = AS_JSON,
) -> None:
    """Turn text into a corpus: cleaned, without duplicates, tokenised, on disk.

    Memory does not grow with the text. When it is stopped, or the machine fails, the same command continues.
    """
    options = BuildOptions(
        language=language if language == "auto" else check_language(language),
        sentences=sentences,
        cleaning=Cleaning(normalise=normalise, min_characters=min_length, mend_encoding=mend_encoding),
        duplicates=duplicates,
        near_duplicates=near_duplicates,
        paragraphs=paragraphs,
        segmenter=segmenter,
        dictionary=dictionary,
    )
    reading = reading_of(sources, field, format, document, max_line_bytes, null_as_empty)
    with BuildBar() as bar:
        done = build_corpus(
            out,
            sources,
            tokenizer_at(tokenizer),
            options,
            reading=reading,
            num_workers=workers,
            restart=restart,
            progress=bar.show,
        )
    tell(done, as_json)


@corpus.command("add", epilog=example("bertie corpus add my-corpus more.jsonl"))
def add(
    folder: Path = typer.Argument(help="A corpus."),
    sources: list[str] = SOURCES,
    tokenizer: Path | None = typer.Option(None, help="To check that it is the corpus's own, which is used anyway."),
    workers: int = WORKERS,
    field: str | None = FIELD,
    format: Format | None = FORMAT,
    document: Boundary = DOCUMENT,
    max_line_bytes: int = LINE,
    null_as_empty: bool = NULLS,
    restart: bool = typer.Option(False, "--restart", help="Forget an unfinished add instead of continuing it."),
    as_json: bool = AS_JSON,
) -> None:
    """Append documents to a corpus, under its own options; what it has already is left out."""
    Corpus.open(folder)  # a missing corpus has a better message than its missing tokenizer
    chosen = tokenizer_at(tokenizer or folder / "tokenizer")
    reading = reading_of(sources, field, format, document, max_line_bytes, null_as_empty)
    with BuildBar() as bar:
        done = add_to_corpus(
            folder, sources, chosen, reading=reading, num_workers=workers, restart=restart, progress=bar.show
        )
    tell(done, as_json)


@corpus.command("verify", epilog=example("bertie corpus verify my-corpus"))
def verify(folder: Path = typer.Argument(help="A corpus, also a frozen one.")) -> None:
    """Compute all checksums again and look through the structure of every shard."""
    from bertie.data.frozen_corpus import is_frozen, verify_frozen  # with torch, for which a build need not wait

    if is_frozen(folder):
        typer.echo(verify_frozen(folder))
        return
    opened = Corpus.open(folder)
    broken = {entry.name: faults for entry, faults in opened.verify() if faults}
    if broken:
        listed = "; ".join(f"{name} {faults[0]}" for name, faults in list(broken.items())[:5])
        more = f"; and {len(broken) - 5} more" if len(broken) > 5 else ""
        hint = "build the corpus again, or restore these files from a copy"
        raise FolderError(f"{len(broken)} broken: {listed}{more}", where=str(folder), hint=hint)
    manifest = opened.manifest
    typer.echo(
        f"{folder}: {len(manifest.shards):,} shards with {manifest.num_documents:,} documents and "
        f"{manifest.num_tokens:,} tokens are as they were written"
    )


def tokenizer_at(path: Path) -> Tokenizer:
    found = load_tokenizer(path)
    if found is None:
        hint = "give a folder with tokenizer.json or vocab.txt; bertie vocab train makes one"
        raise TokenizerError("there is no tokenizer in this folder", where=str(path), hint=hint)
    return found


def reading_of(
    sources: list[str],
    field: str | None,
    format: Format | None,
    document: Boundary,
    max_line_bytes: int,
    null_as_empty: bool,
) -> DocumentOptions:
    return DocumentOptions(
        field=field,
        format=format,
        boundary=document,
        max_line_bytes=max_line_bytes,
        null_as_empty=null_as_empty,
        slice_bytes=slice_bytes(tuple(sources)),
    )


class BuildBar:
    """One line: the stage, MB/s of text, time left."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"))
        self.progress = Progress(
            *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
        )
        self.task: TaskID | None = None
        self.stage = ""

    def __enter__(self) -> "BuildBar":
        self.progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.progress.stop()

    def show(self, step: Step) -> None:
        rate = f"{step.num_bytes / 1e6 / step.seconds:.1f} MB/s" if step.seconds else ""
        total = None if step.fraction is None else BAR_STEPS
        completed = round(BAR_STEPS * (step.fraction or 0.0))
        if self.task is None or step.stage != self.stage:
            if self.task is not None:
                self.progress.remove_task(self.task)
            # What an earlier run did is there from the start and must not count as speed.
            self.task = self.progress.add_task(step.stage, total=total, completed=completed, rate=rate)
            self.stage = step.stage
        else:
            self.progress.update(self.task, total=total, completed=completed, rate=rate)


def tell(done: BuildReport, as_json: bool) -> None:
    for notice in done.notices:
        console.print(notice, markup=False, highlight=False, soft_wrap=True)
    manifest, layer = done.manifest, done.manifest.layers[-1]
    if as_json:
        facts = manifest.model_dump(mode="json", exclude={"shards", "signatures"})
        found = {"folder": str(done.folder), "seconds": done.seconds, "resumed": done.resumed, **facts}
        typer.echo(
            json.dumps({**found, "num_documents": manifest.num_documents, "num_tokens": manifest.num_tokens}, indent=2)
        )
        return
    for stage, count in done.resumed.items():
        typer.echo(f"resumed: {count:,} parts of the stage {stage!r} were there already")
    typer.echo(
        f"{done.folder}: {manifest.num_documents:,} documents, {manifest.num_sentences:,} sentences, "
        f"{manifest.num_words:,} words, {manifest.num_tokens:,} tokens in {len(manifest.shards):,} shards; "
        f"{layer.counts.get('documents read', 0):,} documents read in {done.seconds:.1f} s, "
        f"{done.num_bytes / 1e6 / max(done.seconds, 1e-9):.1f} MB/s"
    )
    for line in count_lines(layer.counts, layer.dropped):
        typer.echo(line)
