"""Turns a corpus and its tokenizer into a `CorpusReport` of counts, histograms and samples.

The corpus is read once. Memory does not grow with it, except by one number a document.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bertie.data.corpus import Corpus
from bertie.data.reports.leakage import Leakage, measure_leakage, read_as_corpus
from bertie.data.samples.frame import Frame
from bertie.reporting.events import OnEvent, ignore, progress
from bertie.text.tokenizers.tokenizer import Tokenizer

BLOCK = 256  # documents that are counted at once
SHOWN_CHARACTERS = 300
# The first word of a character's Unicode name, where it is not the script's own name.
SCRIPTS = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "FULLWIDTH": "Latin",
    "FEMININE": "Latin",
    "MASCULINE": "Latin",
} | dict.fromkeys(
    ("MODIFIER", "SCRIPT", "MATHEMATICAL", "DOUBLE", "BLACK", "CIRCLED", "PARENTHESIZED", "OTHER"), "other letters"
)


@dataclass(frozen=True)
class Bin:
    """How many things have `low` to `high` tokens."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Cut:
    """What is lost when a document, or a sentence, is one row of this length, special tokens included."""

    length: int
    documents: float  # share of documents that are longer
    document_tokens: float  # share of all tokens that are then cut off
    sentences: float
    sentence_tokens: float


@dataclass(frozen=True)
class CorpusReport:
    name: str
    num_documents: int
    num_sentences: int
    num_words: int
    num_tokens: int
    num_unknown: int
    document_lengths: tuple[Bin, ...]
    sentence_lengths: tuple[Bin, ...]
    cuts: tuple[Cut, ...]
    scripts: dict[str, float]  # share of tokens, most frequent first
    dropped: dict[str, int]  # what the build left out, by reason: duplicates and all else
    counts: dict[str, int]  # what the build read and changed
    samples: tuple[tuple[str, str], ...]  # name and beginning of some documents
    leakage: Leakage | None = None
    leaked_texts: tuple[str, ...] = field(default=())  # their beginnings

    @property
    def unknown_rate(self) -> float:
        return self.num_unknown / max(1, self.num_tokens)

    def main_scripts(self, most: int = 12) -> list[tuple[str, float]]:
        """The largest shares; what is smaller, as one."""
        named = list(self.scripts.items())
        rest = sum(share for _, share in named[most:])
        return named[:most] + ([("others", rest)] if rest else [])


def report_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer,
    lengths: Sequence[int] = (128, 512),
    num_samples: int = 5,
    on_event: OnEvent = ignore,
) -> CorpusReport:
    frame = Frame.of(tokenizer)
    rooms = {length: frame.room(length) for length in lengths}
    id_counts = np.zeros(tokenizer.size, np.int64)
    sentence_bins = np.zeros(64, np.int64)
    longer = dict.fromkeys(lengths, 0)
    lost = dict.fromkeys(lengths, 0)
    num_words = num_sentences = 0
    on_event(progress("reading", 0, corpus.num_documents, "documents"))
    for begin in range(0, corpus.num_documents, BLOCK):
        rows = [corpus.document(number) for number in range(begin, min(begin + BLOCK, corpus.num_documents))]
        id_counts += np.bincount(np.concatenate([row.ids for row in rows]), minlength=tokenizer.size)
        num_words += sum(int(np.count_nonzero(row.words)) for row in rows)
        sizes = np.concatenate([np.diff(np.append(row.sentences, len(row.ids)).astype(np.int64)) for row in rows])
        num_sentences += len(sizes)
        sentence_bins += _bins(sizes)
        for length, room in rooms.items():
            longer[length] += int((sizes > room).sum())
            lost[length] += int(np.maximum(sizes - room, 0).sum())
        on_event(progress("reading", begin + len(rows), corpus.num_documents, "documents"))
    num_tokens = int(id_counts.sum())
    cuts = [
        Cut(
            length,
            float((corpus.lengths > room).mean()) if corpus.num_documents else 0.0,
            float(np.maximum(corpus.lengths - room, 0).sum() / max(1, num_tokens)),
            longer[length] / max(1, num_sentences),
            lost[length] / max(1, num_tokens),
        )
        for length, room in rooms.items()
    ]
    return CorpusReport(
        name=corpus.folder.name,
        num_documents=corpus.num_documents,
        num_sentences=num_sentences,
        num_words=num_words,
        num_tokens=num_tokens,
        num_unknown=0 if tokenizer.special.unk is None else int(id_counts[tokenizer.special.unk]),
        document_lengths=_histogram(_bins(corpus.lengths)),
        sentence_lengths=_histogram(sentence_bins),
        cuts=tuple(cuts),
        scripts=_script_mix(id_counts, tokenizer),
        dropped=dict(corpus.manifest.dropped),
        counts=dict(corpus.manifest.counts),
        samples=_samples(corpus, tokenizer, num_samples),
    )


def with_leakage(report: CorpusReport, corpus: Corpus, tokenizer: Tokenizer, texts: Sequence[str]) -> CorpusReport:
    """The report with how much of an evaluation's texts is in the corpus."""
    leakage = measure_leakage(read_as_corpus(texts, corpus, tokenizer), corpus)
    shown = tuple(_beginning(texts[number]) for number in leakage.found_lines)
    return replace(report, leakage=leakage, leaked_texts=shown)


def _beginning(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + " …"


def _bins(sizes: np.ndarray) -> np.ndarray:
    """[64] how many sizes are in [2^k, 2^(k+1))."""
    positive = sizes[sizes > 0]
    return np.bincount(np.frexp(positive)[1] - 1, minlength=64)[:64]


def _histogram(bins: np.ndarray) -> tuple[Bin, ...]:
    filled = np.flatnonzero(bins)
    if not len(filled):
        return ()
    return tuple(Bin(1 << k, (2 << k) - 1, int(bins[k])) for k in range(int(filled[0]), int(filled[-1]) + 1))


def _script_mix(id_counts: np.ndarray, tokenizer: Tokenizer) -> dict[str, float]:
    totals: dict[str, int] = {}
    for id in np.flatnonzero(id_counts).tolist():
        name = "unknown" if id == tokenizer.special.unk else script_of(tokenizer.decode([id], skip_special=False))
        totals[name] = totals.get(name, 0) + int(id_counts[id])
    whole = max(1, sum(totals.values()))
    return {name: count / whole for name, count in sorted(totals.items(), key=lambda item: -item[1])}


def script_of(text: str) -> str:
    """The script of the first letter; "digits" or "signs" without one."""
    for character in text:
        if character.isalpha():
            first = unicodedata.name(character, "OTHER").replace("-", " ").split()[0]
            return SCRIPTS.get(first, first.capitalize())
    return "digits" if any(character.isdigit() for character in text) else "signs"


def _samples(corpus: Corpus, tokenizer: Tokenizer, count: int) -> tuple[tuple[str, str], ...]:
    """The beginnings of documents at even distances."""
    found = []
    for number in np.unique(np.linspace(0, corpus.num_documents - 1, count).astype(int)).tolist():
        if 0 <= number < corpus.num_documents:
            document = corpus.document(number)
            text = tokenizer.decode(document.ids[:SHOWN_CHARACTERS], skip_special=False)
            whole = len(text) <= SHOWN_CHARACTERS and len(document.ids) <= SHOWN_CHARACTERS
            shown = text if whole else text[:SHOWN_CHARACTERS] + " …"
            found.append((f"{number}: {document.name}" if document.name else str(number), shown))
    return tuple(found)
