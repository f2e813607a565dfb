"""A user's own texts: files enter, entries leave. A document is an entry; its first sentence is the summary."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bertie.errors import InputError
from bertie.quickstart.entry import Entry
from bertie.quickstart.learning_rows import pair_of
from bertie.text.documents import DocumentOptions, slices
from bertie.text.sentences import split_sentences

FEWEST = 20  # documents to learn anything from


def own_entries(files: Sequence[str], language: str, notices: list[str]) -> list[Entry]:
    """Of txt files, paragraphs between blank lines; where there are hardly any, lines."""
    entries = list(_read(files, DocumentOptions(), language, notices))
    if len(entries) < FEWEST:
        by_line = list(_read(files, DocumentOptions(boundary="line"), language, []))
        if len(by_line) > len(entries):
            notices.append("hardly any blank lines: each line is a document")
            entries = by_line
    num_short = sum(pair_of(entry) is None for entry in entries)
    if (count := len(entries) - num_short) < FEWEST:
        beside = f", beside {num_short} of hardly a word" if num_short else ""
        hint = f"give more: at least {FEWEST} paragraphs or lines"
        raise InputError(f"there are only {count} texts to learn from{beside}", where=", ".join(files), hint=hint)
    if num_short:
        notices.append(f"{num_short:,} texts of hardly a word can be found, but teach nothing")
    return entries


def _read(files: Sequence[str], options: DocumentOptions, language: str, notices: list[str]) -> Iterator[Entry]:
    documents = [document for part in slices(files, options, notices=notices) for document in part.read()]
    sources = [document.where.rpartition(":")[0] for document in documents]
    above = os.path.commonpath([Path(source).parent for source in sources]) if sources else ""
    for document, source in zip(documents, sources, strict=True):
        paragraphs = [line.strip() for line in document.text.splitlines() if line.strip()]
        titled = document.name != document.where
        if titled and len(paragraphs) > 1 and paragraphs[0] == document.name:
            del paragraphs[0]  # the title again, as in dumps of Wikipedia
        if paragraphs:
            first, *others = split_sentences(paragraphs[0], language)
            rest = "\n".join(part for part in ("".join(others).strip(), *paragraphs[1:]) if part)
            name = document.name if titled else os.path.relpath(document.where, above)
            kind = "titled" if titled else "text"
            yield Entry(name, os.path.relpath(source, above), source, kind, first.strip(), rest)
