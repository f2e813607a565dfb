"""`bertie corpus show`: one document with its sentences, words and pieces, and a preview of a masking."""

import json
import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from bertie.cli.corpus_opening import open_corpus
from bertie.errors import SpecError
from bertie.inspection.document_view import MaskKind, Word, view_document

STYLES = {"plain": "", "masked": "bold red", "random": "bold magenta", "kept": "bold yellow"}
WORD_STYLES = ("cyan", "green")  # neighbouring words are told apart


def show(
    folder: Path = typer.Argument(help="A corpus folder."),
    number: int = typer.Argument(help="The document's number, from 0."),
    tokenizer: Path | None = typer.Option(None, help="The tokenizer's folder, where the corpus has none of its own."),
    mask: MaskKind | None = typer.Option(None, help="Preview a masking of 15%."),
    seed: int = typer.Option(0, min=0, help="Of the masking."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object: sentences of words of pieces."),
) -> None:
    """Print a document: a sentence a line, words apart, the pieces of a word joined by a dot.

    In a masking, [MASK] hides a piece, a→b puts another in its place, and a= keeps it, though it must be predicted.
    """
    corpus, used = open_corpus(folder, tokenizer)
    if not 0 <= number < corpus.num_documents:
        hint = f"give a number from 0 to {corpus.num_documents - 1}" if corpus.num_documents else "it is empty"
        raise SpecError(f"there is no document {number}", where=str(folder), hint=hint)
    document = corpus.document(number)
    sentences = view_document(document, used, mask, seed)
    if as_json:
        plain = [[[str(piece) for piece in word] for word in sentence] for sentence in sentences]
        typer.echo(json.dumps({"name": document.name, "sentences": plain}, ensure_ascii=False))
        return
    num_words = sum(len(sentence) for sentence in sentences)
    typer.echo(
        f"{document.name or number}: {len(sentences):,} sentences, {num_words:,} words, {len(document):,} tokens"
    )
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line, sentence in enumerate(sentences):
        console.print(_line(line, sentence))


def _line(number: int, sentence: list[Word]) -> Text:
    line = Text(f"{number:>4}  ", style="dim")
    for place, word in enumerate(sentence):
        line.append(" " if place else "")
        for order, piece in enumerate(word):
            line.append("·" if order else "", style="dim")
            line.append(str(piece), style=STYLES[piece.fate] or WORD_STYLES[place % 2])
    return line
