"""The jobs `corpus report`, `corpus show` and `corpus freeze`: what a corpus is like, and samples masked once."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bertie.data.frozen_corpus import SAMPLES, is_finished, is_writable, locked
from bertie.data.reports.corpus_page import corpus_page
from bertie.data.reports.corpus_report import Bin, CorpusReport, report_corpus, with_leakage
from bertie.data.reports.document_view import MaskKind, Word, view_document
from bertie.data.shapes import Parallel
from bertie.disk import check_output, check_parent, write_output
from bertie.errors import SpecError
from bertie.jobs.job import LARGEST, LARGEST_SEED, Group, Job, option
from bertie.jobs.options.recipe_choice import choose_recipe
from bertie.jobs.options.text_sources import Sources, TextOptions, are_paths, open_texts
from bertie.jobs.result import Result
from bertie.jobs.text.corpus_jobs import open_corpus
from bertie.models.variant import vary
from bertie.reporting.events import OnEvent, ignore, message
from bertie.train.learning.freezing import freeze_corpus

BAR = 40  # characters of the longest bar of a histogram
STYLES = {"plain": "", "masked": "bold red", "random": "bold magenta", "kept": "bold yellow"}
WORD_STYLES = ("cyan", "green")  # of neighbouring words
TOKENIZER = "The tokenizer's folder, if the corpus has none of its own."


def _numbers(given: Any) -> Any:
    """ "128,512", also several such strings."""
    words = list(given) if isinstance(given, list | tuple) else [given]
    try:
        return [int(number) for word in words for number in str(word).split(",")]
    except ValueError:
        shown = ",".join(map(str, words))
        raise ValueError(f"{shown!r} is not a list of numbers; write it as 128,512") from None


class ReportCorpusJob(Job):
    """Report counts, lengths, unknown tokens, scripts, what was left out, and some samples.

    With `against`: how much of an evaluation file occurs in the corpus.
    """

    verb: ClassVar[str] = "corpus report"
    example: ClassVar[str] = "bertie corpus report my-corpus --html report.html"
    requires = {"column": "against"}  # noqa: RUF012
    corpus: Path = option(help="A corpus folder.", argument=True)
    lengths: Annotated[tuple[Annotated[int, Field(ge=1, le=LARGEST)], ...], BeforeValidator(_numbers)] = option(
        (128, 512), "Row lengths to compare, like 128,512: how much would each cut?", common=True, metavar="N,N"
    )
    against: Sources | None = option(
        None, "An evaluation file to look for in the corpus.", common=True, metavar="FILE", paths=True
    )
    html: Path | None = option(None, "Also write one HTML page.", common=True, metavar="FILE")
    tokenizer: Path | None = option(None, TOKENIZER, metavar="FOLDER")
    reading: TextOptions = TextOptions()

    def run(self, on_event: OnEvent = ignore) -> "CorpusFacts":
        if self.html is not None:
            texts: Any = self.against if are_paths(self.against) else ()
            check_output(self.html, "html", [self.corpus, *texts])
        corpus, tokenizer = open_corpus(self.corpus, self.tokenizer)
        report = report_corpus(corpus, tokenizer, self.lengths, on_event=on_event)
        if self.against is not None:
            with open_texts(self.against, self.reading) as source, source.read() as reader:
                texts = [record.text for record in reader]
            report = with_leakage(report, corpus, tokenizer, texts)
        if self.html is not None:
            write_output(self.html, corpus_page(report).encode(), "html")
            on_event(message(f"{self.html}: written"))
        return CorpusFacts(report)


class CorpusFacts(Result):
    def __init__(self, report: CorpusReport):
        self.report = report

    def to_json(self) -> Any:
        return dataclasses.asdict(self.report)

    def parts(self) -> Iterable[RenderableType]:
        report = self.report
        yield (
            f"{report.name}: {report.num_documents:,} documents, {report.num_sentences:,} sentences, "
            f"{report.num_words:,} words, {report.num_tokens:,} tokens; {report.unknown_rate:.3%} unknown"
        )
        yield from _histogram("Documents by length in tokens", report.document_lengths)
        yield from _histogram("Sentences by length in tokens", report.sentence_lengths)
        table = Table("row length", "longer documents", "their tokens cut", "longer sentences", "their tokens cut")
        for cut in report.cuts:
            shares = (cut.documents, cut.document_tokens, cut.sentences, cut.sentence_tokens)
            table.add_row(f"{cut.length:,}", *(f"{share:.2%}" for share in shares))
        yield table
        yield "Scripts: " + ", ".join(f"{name} {share:.2%}" for name, share in report.main_scripts())
        left_out = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in report.dropped.items())
        yield f"Left out by the build: {left_out or 'nothing'}"
        if report.leakage is not None:
            leakage = report.leakage
            yield (
                f"Leakage: {leakage.num_found_lines:,} of {leakage.num_lines - leakage.num_short:,} lines "
                f"({leakage.line_share:.2%}) and {leakage.num_found_grams:,} of {leakage.num_grams:,} 13-grams "
                f"({leakage.gram_share:.2%}) occur in the corpus; {leakage.num_short:,} lines are too short to judge"
            )
            for text in report.leaked_texts:
                yield f"  found: {text}"
        yield "Samples:"
        for name, text in report.samples:
            yield f"  {name}: {text}"


def _histogram(title: str, bins: Sequence[Bin]) -> Iterator[str]:
    yield title
    largest = max((bin.count for bin in bins), default=1)
    for bin in bins:
        bar = "█" * max(1, round(bin.count / largest * BAR)) if bin.count else ""
        yield f"{bin.low:>10,} – {bin.high:<10,} {bar} {bin.count:,}"


class ShowDocumentJob(Job):
    """Print a document: one sentence per line, the pieces of a word joined by a dot.

    With `mask`: [MASK] hides a piece, a→b puts another in its place, and a= keeps it, though it must be predicted.
    """

    verb: ClassVar[str] = "corpus show"
    example: ClassVar[str] = "bertie corpus show my-corpus 0 --mask whole-word"
    corpus: Path = option(help="A corpus folder.", argument=True)
    number: int = option(help="The document's number, from 0.", argument=True, ge=0)
    mask: MaskKind | None = option(
        None, "Preview a masking of 15%: token, whole-word, span or n-gram.", common=True, metavar="KIND"
    )
    seed: int = option(0, "Seed of the masking.", common=True, ge=0, le=LARGEST_SEED)
    tokenizer: Path | None = option(None, TOKENIZER, metavar="FOLDER")

    def run(self, on_event: OnEvent = ignore) -> "DocumentView":
        corpus, tokenizer = open_corpus(self.corpus, self.tokenizer)
        if not 0 <= self.number < corpus.num_documents:
            last = corpus.num_documents - 1
            hint = f"give a number from 0 to {last}" if corpus.num_documents else "the corpus is empty"
            raise SpecError(f"there is no document {self.number}", where=str(self.corpus), hint=hint)
        document = corpus.document(self.number)
        sentences = view_document(document, tokenizer, self.mask, self.seed)
        return DocumentView(document.name, sentences, f"{document.name or self.number}", len(document))


class DocumentView(Result):
    def __init__(self, name: str, sentences: Sequence[Sequence[Word]], title: str, num_tokens: int):
        self.name, self.sentences, self.title, self.num_tokens = name, sentences, title, num_tokens

    def to_json(self) -> Any:
        plain = [[[str(piece) for piece in word] for word in sentence] for sentence in self.sentences]
        return {"name": self.name, "sentences": plain}

    def parts(self) -> Iterable[RenderableType]:
        num_words = sum(len(sentence) for sentence in self.sentences)
        yield f"{self.title}: {len(self.sentences):,} sentences, {num_words:,} words, {self.num_tokens:,} tokens"
        for number, sentence in enumerate(self.sentences):
            line = Text(f"{number:>4}  ", style="dim")
            for place, word in enumerate(sentence):
                line.append(" " if place else "")
                for order, piece in enumerate(word):
                    line.append("·" if order else "", style="dim")
                    line.append(str(piece), style=STYLES[piece.fate] or WORD_STYLES[place % 2])
            yield line


class MaskingOptions(Group):
    title: ClassVar[str] = "Samples"
    max_length: int = option(128, "Tokens per row.", common=True, ge=8)
    duplicate_factor: int = option(10, "Write each sample N times, masked differently.", common=True, ge=1)
    mask: MaskKind | None = option(
        None, "What is masked: token, whole-word, span or n-gram; the recipe decides by default.", metavar="KIND"
    )
    mask_rate: float | None = option(
        None, "Share of tokens that are masked; the recipe decides by default.", gt=0, lt=1
    )
    sentences: Literal["nsp", "sop", "none"] | None = option(
        None, "The task on pairs of sentences: nsp, sop or none; the recipe decides by default.", metavar="TASK"
    )
    held_out: int = option(100, "Hold out one document in N for evaluation; 0 for none.", ge=0)
    seed: int = option(0, "Random seed of samples and masks.", common=True, ge=0, le=LARGEST_SEED)


class FreezeCorpusJob(Job):
    """Write static masks: what training would draw again in each epoch is drawn once and kept."""

    verb: ClassVar[str] = "corpus freeze"
    example: ClassVar[str] = "bertie corpus freeze my-corpus --recipe bert --out my-masks"
    corpus: Path = option(help="A corpus folder.", argument=True)
    recipe: str = option(help="The recipe whose objectives mask the samples.")
    out: Path = option(help="Folder to write; bertie pretrain takes it as its corpus.", metavar="FOLDER")
    overwrite: bool = option(False, "Replace frozen samples that are there.", common=True)
    tokenizer: Path | None = option(None, TOKENIZER, metavar="FOLDER")
    samples: MaskingOptions = MaskingOptions()

    def run(self, on_event: OnEvent = ignore) -> "FrozenSamples":
        out, chosen = self.out, self.samples
        self._refuse_finished()
        if not is_writable(out):
            raise SpecError("the folder holds other files", where=str(out), hint="give a new folder as `out`")
        check_parent(out / SAMPLES)
        corpus, tokenizer = open_corpus(self.corpus, self.tokenizer)
        small = choose_recipe(self.recipe, "tiny", tokenizer.size)
        if any(isinstance(one.samples, Parallel) for one in small.objectives):
            raise SpecError(f"{self.recipe} learns from texts and their translations, which cannot be frozen")
        recipe = vary(small, mask=chosen.mask, mask_rate=chosen.mask_rate, sentences=chosen.sentences)
        with locked(out):
            self._refuse_finished()  # by another process, meanwhile
            num_samples = freeze_corpus(
                out,
                corpus,
                tokenizer,
                recipe,
                length=chosen.max_length,
                duplicate_factor=chosen.duplicate_factor,
                held_out=chosen.held_out,
                seed=chosen.seed,
                on_event=on_event,
            )
        return FrozenSamples(out, num_samples, chosen.duplicate_factor)

    def _refuse_finished(self) -> None:
        if is_finished(self.out) and not self.overwrite:
            hint = "give another folder as `out`, or `overwrite`"
            raise SpecError("there are frozen samples here already", where=str(self.out), hint=hint)


class FrozenSamples(Result):
    def __init__(self, folder: Path, num_different: int, duplicate_factor: int):
        self.folder, self.num_different, self.duplicate_factor = folder, num_different, duplicate_factor
        self.num_bytes = sum(file.stat().st_size for file in folder.glob("*.arrow"))

    def to_json(self) -> Any:
        return {
            "folder": str(self.folder),
            "num_samples": self.num_different * self.duplicate_factor,
            "num_different": self.num_different,
            "num_bytes": self.num_bytes,
        }

    def parts(self) -> Iterable[str]:
        total = self.num_different * self.duplicate_factor
        times = f"{self.num_different:,} x {self.duplicate_factor}"
        yield f"{self.folder}: {total:,} samples ({times}), {self.num_bytes / 1e6:,.1f} MB"
