"""The jobs `vocab train` and `vocab extend`: texts to a tokenizer, and words to a tokenizer that lacks them."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from bertie.disk import refuse_inputs
from bertie.errors import SpecError, TokenizerError
from bertie.jobs.job import Group, Job, option
from bertie.jobs.options.text_sources import ReadingOptions, Sources, are_paths, as_files, to_read
from bertie.jobs.result import Result, Temporary, place_for
from bertie.reporting.events import OnEvent, ignore, warn
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.vocab.building import VocabReport, train_vocabulary
from bertie.text.vocab.vocab_options import VocabOptions
from bertie.text.vocab.word_sources import WordSources

if TYPE_CHECKING:
    from bertie.models.table_extension import (
        ExtensionReport,  # with torch, for which training a vocabulary need not wait
    )

GIGABYTE = 1_000_000_000
SHOWN_WORDS, SHOWN_SKIPPED = 10, 20

Kind = Literal["wordpiece", "byte-bpe", "unigram", "characters", "words"]


class VocabularyOptions(Group):
    title: ClassVar[str] = "Vocabulary"
    kind: Kind = option("wordpiece", "wordpiece, byte-bpe, unigram, characters or words.", common=True, metavar="KIND")
    size: int = option(16_000, "Maximum size of the vocabulary, special tokens included.", common=True, ge=1)
    lowercase: bool | None = option(
        None, "Lower-case all text; default for wordpiece.", common=True, flag="--lowercase/--cased"
    )
    strip_accents: bool | None = option(
        None, "Remove accents; default where text is lower-cased.", flag="--strip-accents/--keep-accents"
    )
    split_chinese: bool | None = option(
        None,
        "Make each Chinese character a word; default for wordpiece and words.",
        flag="--split-chinese/--keep-chinese",
    )
    special: tuple[str, ...] = option((), "A further special token; can be given several times.", metavar="TOKEN")
    min_frequency: int = option(2, "Leave out rarer merges, words and characters.", ge=1)


class CountingOptions(Group):
    title: ClassVar[str] = "Running"
    ram: float = option(1.0, "Gigabytes of memory; beyond them the rarest words are left out and counted.", gt=0)
    held_out: int = option(50, "Hold out one document in N for the report; 0 for none.", ge=0)
    workers: int = option(1, "Processes that count words, each with memory of its own.", ge=1, le=1024)


class TrainVocabJob(Job):
    """Train a vocabulary.

    The same input and options give the same files, byte for byte.
    """

    verb: ClassVar[str] = "vocab train"
    example: ClassVar[str] = "bertie vocab train texts/ --kind wordpiece --size 16000 --out my-vocab"
    sources: Sources = option(
        help="Files, folders or globs: txt, jsonl, csv, tsv, parquet, also gz or zst; - is stdin.",
        argument=True,
        many=True,
        paths=True,
    )
    out: Path | None = option(None, "Folder to write.", needed=True, metavar="FOLDER")
    overwrite: bool = option(False, "Replace an existing vocabulary.", common=True)
    vocabulary: VocabularyOptions = VocabularyOptions()
    reading: ReadingOptions = ReadingOptions()
    counting: CountingOptions = CountingOptions()

    def run(self, on_event: OnEvent = ignore) -> "TrainedVocab":
        chosen, counting = self.vocabulary, self.counting
        options = VocabOptions(
            kind=chosen.kind,
            size=chosen.size,
            lowercase=chosen.lowercase,
            strip_accents=chosen.strip_accents,
            split_ideographs=chosen.split_chinese,
            special=chosen.special,
            min_frequency=chosen.min_frequency,
            ram=round(counting.ram * GIGABYTE),
            held_out=counting.held_out,
            workers=counting.workers,
        )
        folder, temporary = place_for(self.out, "vocab")
        refuse_inputs(folder, self.sources if are_paths(self.sources) else ())
        report = train_vocabulary(
            to_read(self.sources, self.reading.column),
            folder,
            options,
            documents=self.reading.documents(),
            overwrite=self.overwrite,
            on_event=on_event,
        )
        return TrainedVocab(folder, report, temporary)


class _TokenizerFolder(Result):
    def __init__(self, folder: Path, temporary: Temporary | None = None):
        self.folder, self._temporary = folder, temporary

    @cached_property
    def tokenizer(self) -> Tokenizer:
        found = load_tokenizer(self.folder)
        if found is None:
            raise TokenizerError("there is no tokenizer in this folder", where=str(self.folder))
        return found


class TrainedVocab(_TokenizerFolder):
    """A vocabulary: its `tokenizer`, its `folder`, and a `report` on what was read and how well it covers text."""

    def __init__(self, folder: Path, report: VocabReport, temporary: Temporary | None = None):
        super().__init__(folder, temporary)
        self.report = report

    def to_json(self) -> Any:
        return self.report.to_json()

    def parts(self) -> Iterable[RenderableType]:
        report, coverage = self.report, self.report.coverage
        name = "" if self._temporary else f"{self.folder}: "
        facts = Table(title=escape(f"{name}{report.kind}, {report.size:,} pieces"), show_header=False)
        facts.add_row("documents read", f"{report.num_documents:,} ({report.num_held_out:,} held out)")
        facts.add_row("words read", f"{report.num_words:,} ({report.num_left_out:,} not trained on)")
        facts.add_row("words cut in long text without white space", f"{report.num_cut:,}")
        facts.add_row("distinct words trained on", f"{report.num_distinct_words:,}")
        facts.add_row("characters too rare to keep", f"{report.num_rare_characters:,}")
        facts.add_row("measured on", report.measured_on)
        unknown = f"{coverage.unknown_rate:.4%} ({coverage.num_unknown:,} of {coverage.num_pieces:,})"
        facts.add_row("unknown rate", unknown)
        facts.add_row("pieces per word", f"{coverage.pieces_per_word:.3f}")
        yield facts
        table = Table("word", "count", "pieces", title="most split words")
        for split in coverage.most_split[:10]:
            table.add_row(escape(split.word[:40]), f"{split.count:,}", escape(" ".join(split.pieces)[:60]))
        yield table


class FindingOptions(Group):
    title: ClassVar[str] = "Words of texts"
    min_pieces: int = option(3, "Add words that are split into at least N pieces now.", common=True, ge=2)
    ram: float = option(1.0, "Gigabytes of memory for counting words.", gt=0)
    column: str | None = option(None, "Column or JSON field of the texts; text by default.", common=True)


class ExtendVocabJob(Job):
    """Add words to a WordPiece or BPE tokenizer, and rows for them to its model.

    The words come from a list, or are found in texts: those whose splitting costs the most pieces.
    """

    verb: ClassVar[str] = "vocab extend"
    example: ClassVar[str] = "bertie vocab extend my-model --words words.txt --out my-model-with-words"
    exclusive = (("words", "texts"),)
    base: str = option(help="A model folder, or a folder with only a tokenizer.", argument=True)
    words: Sources | None = option(None, "A list of words, one per line.", common=True, metavar="FILE", paths=True)
    texts: Sources | None = option(
        None, "Texts to find words in; can be given several times.", common=True, metavar="FILE", many=True, paths=True
    )
    out: Path | None = option(None, "Folder to write.", needed=True, metavar="FOLDER")
    count: int = option(1000, "Words at most.", common=True, ge=1)
    overwrite: bool = option(False, "Replace an existing folder.", common=True)
    finding: FindingOptions = FindingOptions()

    def run(self, on_event: OnEvent = ignore) -> "ExtendedVocab":
        from bertie.models.table_extension import extend_folder

        if (self.words is None) == (self.texts is None):
            raise SpecError("there are no words to add", hint="give `words`, or `texts` to find them in")
        folder, temporary = place_for(self.out, "extended")
        given: Any = self.texts if self.words is None else self.words
        refuse_inputs(folder, [self.base, *(given if are_paths(given) else ())])
        with as_files(given) as names:
            wanted = WordSources(
                sources=names,
                kind="corpus" if self.words is None else "list",
                num_words=self.count,
                min_pieces=self.finding.min_pieces,
                ram=round(self.finding.ram * GIGABYTE),
                column=self.finding.column if are_paths(given) else None,
            )
            report = extend_folder(self.base, wanted, folder, self.overwrite, on_event)
        return ExtendedVocab(folder, report, temporary)


class ExtendedVocab(_TokenizerFolder):
    """A folder whose `tokenizer` knows more words, and a `report` on which were added."""

    def __init__(self, folder: Path, report: "ExtensionReport", temporary: Temporary | None = None):
        super().__init__(folder, temporary)
        self.report = report

    def to_json(self) -> Any:
        return self.report.to_json()

    def parts(self) -> Iterable[str]:
        report = self.report
        shown = ", ".join(report.words[:SHOWN_WORDS]) + (", ..." if len(report.words) > SHOWN_WORDS else "")
        yield (
            f"{self.folder}: {len(report.words):,} words added ({shown}); "
            f"{report.num_pieces:,} new pieces, {report.size:,} in all"
        )
        for word, reason in list(report.skipped.items())[:SHOWN_SKIPPED]:
            yield f"  not added: {word} ({reason})"
        if len(report.skipped) > SHOWN_SKIPPED:
            yield f"  ... and {len(report.skipped) - SHOWN_SKIPPED:,} more"


def train_vocab(
    sources: Any,
    *,
    kind: Kind = "wordpiece",
    size: int = 16_000,
    out: str | Path | None = None,
    lowercase: bool | None = None,
    strip_accents: bool | None = None,
    split_chinese: bool | None = None,
    special: Iterable[str] = (),
    min_frequency: int = 2,
    column: str | None = None,
    format: str | None = None,
    document: str | None = None,
    max_line_bytes: int | None = None,
    null_as_empty: bool | None = None,
    encoding: str | None = None,
    ram: float = 1.0,
    held_out: int = 50,
    workers: int = 1,
    overwrite: bool = False,
    on_event: OnEvent = warn,
) -> TrainedVocab:
    """Trains a vocabulary on texts: paths of files, folders and globs, or an iterable of texts.

    Without `out` it lives in a temporary folder as long as the result.

    >>> vocab = bertie.train_vocab(["the cat sat on the mat", "the dog sat on the log"] * 20, size=28)
    >>> vocab.tokenizer.size
    28
    """
    job = TrainVocabJob.of(
        sources=sources,
        kind=kind,
        size=size,
        out=out,
        lowercase=lowercase,
        strip_accents=strip_accents,
        split_chinese=split_chinese,
        special=tuple(special),
        min_frequency=min_frequency,
        column=column,
        format=format,
        document=document,
        max_line_bytes=max_line_bytes,
        null_as_empty=null_as_empty,
        encoding=encoding,
        ram=ram,
        held_out=held_out,
        workers=workers,
        overwrite=overwrite,
    )
    return job.run(on_event)


def extend_vocab(
    base: str | Path,
    *,
    words: Any = None,
    texts: Any = None,
    out: str | Path | None = None,
    count: int = 1000,
    min_pieces: int = 3,
    column: str | None = None,
    ram: float = 1.0,
    overwrite: bool = False,
    on_event: OnEvent = warn,
) -> ExtendedVocab:
    """Adds words to a tokenizer, and rows for them to its model. Give `words`, or `texts` to find them in.

    >>> vocab = bertie.train_vocab(["the cat sat on the mat", "the dog sat on the log"] * 20, size=40)
    >>> bertie.extend_vocab(vocab.folder, words=["dogmat"]).report.words
    ('dogmat',)
    """
    job = ExtendVocabJob.of(
        base=str(base),
        words=words,
        texts=texts,
        out=out,
        count=count,
        min_pieces=min_pieces,
        column=column,
        ram=ram,
        overwrite=overwrite,
    )
    return job.run(on_event)
