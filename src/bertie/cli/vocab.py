"""`bertie vocab`: train a vocabulary, or give an old one new words. Results go to stdout, progress to stderr."""

import json
import os
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bertie.cli.app import console, example
from bertie.cli.choices import check
from bertie.text.documents import Boundary, DocumentOptions, Format
from bertie.text.lines import MAX_LINE_BYTES
from bertie.text.vocab.building import VocabReport, train_vocabulary
from bertie.text.vocab.options import KINDS, VocabOptions

GIGABYTE = 1_000_000_000

vocab = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@vocab.callback()
def vocabularies() -> None:
    """Train a vocabulary, or extend one."""


@vocab.command(epilog=example("bertie vocab train texts/ --kind wordpiece --size 16000 --out my-vocab"))
def train(
    sources: list[str] = typer.Argument(help="Files, folders or globs: txt, jsonl, csv, tsv, parquet; - is stdin."),
    out: Path = typer.Option(help="The folder to write."),
    kind: str = typer.Option("wordpiece", help=f"One of {', '.join(KINDS)}."),
    size: int = typer.Option(16_000, help="Pieces at most, special tokens included."),
    lowercase: bool | None = typer.Option(None, "--lowercase/--cased", help="WordPiece is lower-cased by default."),
    strip_accents: bool | None = typer.Option(
        None, "--strip-accents/--keep-accents", help="As the case when not given."
    ),
    split_ideographs: bool | None = typer.Option(
        None, "--split-chinese/--keep-chinese", help="Each Chinese character a word; default for wordpiece and words."
    ),
    special: list[str] = typer.Option([], help="A further special token; may be given several times."),
    min_frequency: int = typer.Option(2, help="Rarer merges, words and characters are left out."),
    ram: float = typer.Option(1.0, help="Gigabytes of memory; past them the rarest words are left out and counted."),
    held_out: int = typer.Option(50, help="One document in so many is kept for the report; 0 for none."),
    workers: int = typer.Option(1, help="Processes that count words, each with memory of its own."),
    field: str | None = typer.Option(None, help="The JSON field or the column of the texts."),
    format: Format | None = typer.Option(None, help="Whatever the file's ending says."),
    document: Boundary = typer.Option("blank-line", help="What ends a document in a txt file."),
    max_line_bytes: int = typer.Option(MAX_LINE_BYTES, min=1, help="A longer line is an error."),
    null_as_empty: bool = typer.Option(False, "--null-as-empty", help="A null counts as an empty text."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing vocabulary."),
    as_json: bool = typer.Option(False, "--json", help="Print the report as one JSON object."),
) -> None:
    """Train a vocabulary. The same input and options give the same files, byte for byte."""
    check("vocabulary kind", kind, KINDS)
    options = VocabOptions(
        kind=kind,
        size=size,
        lowercase=lowercase,
        strip_accents=strip_accents,
        split_ideographs=split_ideographs,
        special=tuple(special),
        min_frequency=min_frequency,
        ram=round(ram * GIGABYTE),
        held_out=held_out,
        workers=workers,
    )
    notices: list[str] = []
    documents = DocumentOptions(
        field=field, format=format, boundary=document, max_line_bytes=max_line_bytes, null_as_empty=null_as_empty
    )
    report = train_vocabulary(sources, out, options, documents=documents, overwrite=overwrite, notices=notices)
    for notice in notices:
        console.print(notice, markup=False, highlight=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        _show(report, out)


@vocab.command(epilog=example("bertie vocab extend my-model words.txt --from list --out my-model-with-words"))
def extend(
    base: str = typer.Argument(help="A model folder, or a folder with a tokenizer alone."),
    sources: list[str] = typer.Argument(help="A list of words, one a line; or texts, as in `vocab train`."),
    origin: Literal["corpus", "list"] = typer.Option(..., "--from", help="What the sources are."),
    out: Path = typer.Option(help="The folder to write."),
    count: int = typer.Option(1000, min=1, help="Words at most; of texts those whose splitting costs most pieces."),
    min_pieces: int = typer.Option(3, min=2, help="A word of texts is added when it has so many pieces now."),
    ram: float = typer.Option(1.0, help="Gigabytes of memory for counting words of texts."),
    field: str | None = typer.Option(None, help="The JSON field or the column of the texts."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing folder."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Add words to a WordPiece or BPE tokenizer, and rows for them to its model."""
    from bertie.models.extension import extend_folder
    from bertie.text.vocab.word_sources import WordSources

    wanted = WordSources(tuple(sources), origin, count, min_pieces, round(ram * GIGABYTE), field)
    report = extend_folder(base, wanted, out, overwrite)
    for note in report.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
        return
    shown = ", ".join(report.words[:10]) + (", ..." if len(report.words) > 10 else "")
    typer.echo(
        f"{out}: {len(report.words):,} words added ({shown}); {report.num_pieces:,} new pieces, now {report.size:,}"
    )
    for word, reason in list(report.skipped.items())[:20]:
        typer.echo(f"  not added: {word} ({reason})")
    if len(report.skipped) > 20:
        typer.echo(f"  ... and {len(report.skipped) - 20:,} more")


def _show(report: VocabReport, out: Path) -> None:
    coverage = report.coverage
    facts = Table(title=escape(f"{os.fspath(out)}: {report.kind}, {report.size:,} pieces"), show_header=False)
    facts.add_row("documents read", f"{report.num_documents:,} ({report.num_held_out:,} held out)")
    facts.add_row("words read", f"{report.num_words:,} ({report.num_left_out:,} not trained on)")
    facts.add_row("cut in long text without white space", f"{report.num_cut:,}")
    facts.add_row("distinct words trained on", f"{report.num_distinct_words:,}")
    facts.add_row("characters too rare to keep", f"{report.num_rare_characters:,}")
    facts.add_row("measured on", report.measured_on)
    facts.add_row("unknown rate", f"{coverage.unknown_rate:.4%} ({coverage.num_unknown:,} of {coverage.num_pieces:,})")
    facts.add_row("pieces per word", f"{coverage.pieces_per_word:.3f}")
    table = Table("word", "count", "pieces", title="most split words")
    for split in coverage.most_split[:10]:
        table.add_row(escape(split.word[:40]), f"{split.count:,}", escape(" ".join(split.pieces)[:60]))
    printer = Console(emoji=False)
    printer.print(facts)
    printer.print(table)
