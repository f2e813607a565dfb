"""`bertie corpus report`: what a corpus is like, in the terminal and as one HTML page."""

import dataclasses
import json
import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from bertie.cli.app import console
from bertie.cli.corpus_opening import open_corpus
from bertie.errors import SpecError
from bertie.inspection.corpus_page import corpus_page
from bertie.inspection.corpus_report import Bin, CorpusReport, report_corpus, with_leakage
from bertie.progress import progress_line
from bertie.text.files import TextSource

BAR = 40  # characters


def report(
    folder: Path = typer.Argument(help="A corpus folder."),
    tokenizer: Path | None = typer.Option(None, help="The tokenizer's folder, where the corpus has none of its own."),
    length: str = typer.Option("128,512", help="Row lengths for which to tell what they would cut."),
    against: Path | None = typer.Option(None, help="An evaluation file: how much of it is in the corpus?"),
    field: str | None = typer.Option(None, help="The JSON field or the column of the evaluation's texts."),
    html: Path | None = typer.Option(None, help="Also write one self-contained HTML page."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Tell what a corpus is like: counts, lengths, unknown tokens, scripts, what was left out, leakage, samples."""
    corpus, used = open_corpus(folder, tokenizer)
    with progress_line("Reading", corpus.num_documents, "documents") as advance:
        found = report_corpus(corpus, used, _lengths(length), advance=advance)
    if against is not None:
        texts = [record.text for record in TextSource(against, field).read()]
        found = with_leakage(found, corpus, used, texts)
    if html is not None:
        _write(html, corpus_page(found))
        console.print(f"{html}: written", markup=False, highlight=False)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), ensure_ascii=False))
    else:
        _print(found)


def _write(path: Path, page: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise SpecError(
            f"cannot be written ({error.strerror})", where=str(path), hint="name another file with --html"
        ) from None


def _lengths(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise SpecError(f"--length {words!r} is no list of numbers", hint="write it as 128,512") from None


def _print(report: CorpusReport) -> None:
    terminal = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    terminal.print(
        f"{report.name}: {report.num_documents:,} documents, {report.num_sentences:,} sentences, "
        f"{report.num_words:,} words, {report.num_tokens:,} tokens; {report.unknown_rate:.3%} unknown"
    )
    _histogram(terminal, "Documents by length in tokens", report.document_lengths)
    _histogram(terminal, "Sentences by length in tokens", report.sentence_lengths)
    table = Table("a row of", "documents longer", "their tokens cut", "sentences longer", "their tokens cut")
    for cut in report.cuts:
        shares = (cut.documents, cut.document_tokens, cut.sentences, cut.sentence_tokens)
        table.add_row(f"{cut.length:,}", *(f"{share:.2%}" for share in shares))
    terminal.print(table)
    terminal.print("Scripts: " + ", ".join(f"{name} {share:.2%}" for name, share in report.main_scripts()))
    left_out = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in report.dropped.items())
    terminal.print(f"Left out by the build: {left_out or 'nothing'}")
    if report.leakage is not None:
        leakage = report.leakage
        terminal.print(
            f"Leakage: {leakage.num_found_lines:,} of {leakage.num_lines - leakage.num_short:,} lines "
            f"({leakage.line_share:.2%}) and {leakage.num_found_grams:,} of {leakage.num_grams:,} 13-grams "
            f"({leakage.gram_share:.2%}) occur in the corpus; {leakage.num_short:,} lines are too short to tell"
        )
        for text in report.leaked_texts:
            terminal.print(f"  found: {text}")
    terminal.print("Samples:")
    for name, text in report.samples:
        terminal.print(f"  {name}: {text}")


def _histogram(terminal: Console, title: str, bins: tuple[Bin, ...]) -> None:
    terminal.print(title)
    largest = max((bin.count for bin in bins), default=1)
    for bin in bins:
        bar = "█" * max(1, round(bin.count / largest * BAR)) if bin.count else ""
        terminal.print(f"{bin.low:>10,} – {bin.high:<10,} {bar} {bin.count:,}")
