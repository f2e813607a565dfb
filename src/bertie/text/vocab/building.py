"""Turns sources and options into a vocabulary folder: count, train, measure on held-out text, write."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertie.errors import InputError
from bertie.reporting.events import OnEvent, ignore, progress
from bertie.text.reading.documents import DocumentOptions, Sources, slices
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.vocab.counting import Counting, Readable, WordCounts, count_words
from bertie.text.vocab.output import check_out, new_folder
from bertie.text.vocab.pipelines import build_splitter, build_tokenizer
from bertie.text.vocab.report import Coverage, measure
from bertie.text.vocab.training import Training, train
from bertie.text.vocab.vocab_options import VocabOptions

REPORT = "vocab_report.json"


@dataclass(frozen=True)
class VocabReport:
    """What was read, what was left out, and how well the result covers text that it was not trained on."""

    kind: str
    size: int
    asked_size: int
    digest: str
    num_documents: int
    num_characters: int
    num_held_out: int  # documents
    measured_on: str  # "held-out documents", or "the training text" where none was held out
    num_not_measured: int  # held-out words past what is enough to measure on
    num_distinct_words: int  # that were trained on
    num_words: int  # occurrences in the training text
    num_cut: int  # words that were cut in two, since they stood in very long text without white space
    num_left_out: int  # of these not trained on: pruned for memory, too long, or with rare characters
    num_rare_characters: int
    coverage: Coverage

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def train_vocabulary(
    sources: Sources,
    out: Path,
    options: VocabOptions,
    *,
    documents: DocumentOptions | None = None,
    overwrite: bool = False,
    on_event: OnEvent = ignore,
) -> VocabReport:
    """Train from texts and write the folder `out`; the same files and options give the same bytes."""
    check_out(out, overwrite)
    with TemporaryDirectory() as spool:
        parts = slices(sources, documents, spool=Path(spool), on_event=on_event)
        tokenizer, report = build_vocabulary(parts, options, on_event)
    with new_folder(out, overwrite) as folder:
        tokenizer.save(folder)
        text = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
        (folder / REPORT).write_text(text, encoding="utf-8")
    return report


def build_vocabulary(
    parts: Sequence[Readable], options: VocabOptions, on_event: OnEvent = ignore
) -> tuple[PipelineTokenizer, VocabReport]:
    counting = Counting(build_splitter(options), options.keeps_spaces, options.ram, options.held_out, options.workers)
    counts = count_words(parts, counting, on_event)
    if not counts.words and not counts.held_out:
        raise InputError("there is no text to train on", hint="give files that hold words")
    alone = not counts.words or not counts.held_out
    if not counts.words:  # a few documents, and chance held all of them out
        counts.words, counts.num_held_out = counts.held_out, 0
    on_event(progress("training the vocabulary", 0, None, ""))
    training = train(counts.words, options)
    tokenizer = build_tokenizer(options, training.trained)
    coverage = measure(tokenizer, counts.words if alone else counts.held_out)
    return tokenizer, _report(options, tokenizer, counts, training, coverage, alone)


def _report(
    options: VocabOptions,
    tokenizer: PipelineTokenizer,
    counts: WordCounts,
    training: Training,
    coverage: Coverage,
    alone: bool,
) -> VocabReport:
    return VocabReport(
        kind=options.kind,
        size=tokenizer.size,
        asked_size=options.size,
        digest=tokenizer.digest,
        num_documents=counts.num_documents,
        num_characters=counts.num_characters,
        num_held_out=counts.num_held_out,
        measured_on="the training text" if alone else "held-out documents",
        num_not_measured=counts.num_not_measured,
        num_distinct_words=training.num_words,
        num_words=counts.words.total() + counts.num_pruned,
        num_cut=counts.num_cut,
        num_left_out=training.num_left_out + counts.num_pruned,
        num_rare_characters=training.num_rare_characters,
        coverage=coverage,
    )


def characters_of(texts: Iterable[str]) -> PipelineTokenizer:
    """A tokenizer of the single characters of texts, the most frequent first. Those that occur once are unknown, so
    that the model learns what to do with unknown ones."""
    options = VocabOptions(kind="characters")
    words = Counter(word for text in texts for word in text.split())
    return build_tokenizer(options, train(words, options).trained)
