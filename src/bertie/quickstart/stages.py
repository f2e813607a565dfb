"""The stages of a quickstart: a plan and a folder enter; what each stage does, by which command, and what it leaves.

A stage is a command of bertie, and rows that must be written before it. It is over when what it leaves is there, so a
quickstart that was killed goes on with the stage that it was in, and the command itself goes on where it stood.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertie.data.manifest import FILE as MANIFEST
from bertie.progress import progress_line
from bertie.quickstart.documentation import gather, source_files
from bertie.quickstart.entry import Entry, characters_told, read_entries, write_entries
from bertie.quickstart.learning_rows import (
    FEWEST_HELD_OUT,
    LENGTH,
    Row,
    collection,
    documents,
    held_out,
    labelled,
    learned,
    pair_of,
    pairs,
    read_rows,
    searched,
    shuffled,
    write_rows,
)
from bertie.quickstart.own_text import own_entries
from bertie.quickstart.pace import Pace, read_pace
from bertie.quickstart.plan import CLASSIFIER, ENCODER, PRETRAINING, Place, Plan
from bertie.train.run_folder import MODEL, SUMMARY

CONFIG = "config.json"  # of a model folder, written last
STAGES = ("gather", "vocabulary", "corpus", "pretrain", "classify", "whiten", "encode", "embed")
VOCABULARY = 8000  # pieces: fewer make a smaller head, and the text is not large
CHARACTERS = 5000  # of these pieces, at most; most letters are two: one that begins a word, and one within it
EPOCHS = 3  # of the classifier
MOST_EPOCHS = 10  # of the encoder, where there are few pairs
MEASURED, SHARE_MEASURED = 1000, 4  # pairs to be measured on: at most so many, and one for so many to learn from
SPREAD_BY, FEWEST = 2000, 1000  # texts that say how the vectors of a young model lie; with fewer it is not known
FAST = ("--lr", "2e-3", "--batch-tokens", "1024")  # many small steps at a high rate: what learns most in minutes
# A model of a few minutes has nothing to lose by a high rate; real weights have.
RATES = {"classifier": ("3e-4", "5e-5"), "encoder": ("1e-3", "2e-5")}

Say = Callable[[str], None]


def nothing(say: Say) -> str | None:
    return None


@dataclass(frozen=True)
class Stage:
    name: str
    does: str  # in one sentence
    leaves: Path  # there when the stage is over
    prepare: Callable[[Say], str | None] = field(default=nothing)  # says why there is nothing to do, if so
    words: Callable[[], list[str]] | None = None  # of the command; None: the quickstart's own


def stages(place: Place, plan: Plan) -> list[Stage]:
    work = _Work(place, plan)
    gathering = Stage("gather", work.told_of_gathering(), place.entries, prepare=work.gather)
    model = (
        []
        if plan.base
        else [
            Stage(
                "vocabulary",
                "Train a vocabulary: which pieces of words the model reads.",
                place.vocabulary,
                words=work.vocabulary_words,
            ),
            Stage(
                "corpus",
                "Build a corpus: clean the text, leave out what is there twice, turn it into numbers.",
                place.corpus / MANIFEST,
                words=work.corpus_words,
            ),
            Stage(
                "pretrain",
                "Pre-train a small model (MINI) from nothing: it guesses words that were masked.",
                place.pretraining / SUMMARY,
                words=work.pretrain_words,
            ),
        ]
    )
    whitening = Stage(
        "whiten",
        "Spread its vectors evenly: those of a young model point one way, and comparing them would teach nothing.",
        place.spread / CONFIG,
        prepare=work.write_texts,
        words=lambda: [
            *("whiten", str(place.pretraining / MODEL), "--data", str(place.rows("texts", "train"))),
            *("--max-length", str(LENGTH), "--out", str(place.spread)),
        ],
    )
    return [
        gathering,
        *model,
        Stage(
            "classify",
            f"Teach it to tell which {work.group} a text is from, beside a method that counts words.",
            place.classifier / SUMMARY,
            prepare=work.write_labelled,
            words=work.classify_words,
        ),
        *([] if plan.base else [whitening]),
        Stage(
            "encode",
            "Teach it vectors: a summary and the text that it sums up are to be near each other.",
            place.encoder / SUMMARY,
            prepare=work.write_pairs,
            words=work.encode_words,
        ),
        Stage(
            "embed",
            "Turn everything that can be found into vectors.",
            place.vectors,
            prepare=work.write_collection,
            words=lambda: [
                *("embed", str(place.encoder / MODEL), str(place.collection), "--max-length", str(LENGTH)),
                *("--out", str(place.vectors)),
            ],
        ),
    ]


class _Work:
    """What stands before the commands, and the words of those that depend on the plan."""

    def __init__(self, place: Place, plan: Plan):
        self.place, self.plan = place, plan
        self.base = plan.base or str(place.pretraining / MODEL)
        self.group = "package" if plan.is_documentation else "file"

    @property
    def entries(self) -> list[Entry]:
        return read_entries(self.place.entries)

    @property
    def with_pairs(self) -> list[Entry]:
        return [entry for entry in self.entries if pair_of(entry) is not None]

    @property
    def spread(self) -> str:
        """The base of the encoder."""
        return str(self.place.spread) if (self.place.spread / CONFIG).exists() else self.base

    def pace(self, stage: str, base: str, texts: Sequence[str], say: Say) -> Pace:
        say("How fast this model learns here is measured first.")
        return read_pace(self.place / f"pace-{stage}.json", base, texts, LENGTH)

    def told_of_gathering(self) -> str:
        if self.plan.is_documentation:
            return (
                "Gather the documentation of this Python and its packages: topics and docstrings, parsed and not run."
            )
        return f"Read {', '.join(self.plan.texts)}."

    def gather(self, say: Say) -> str | None:
        if self.plan.is_documentation:
            files = source_files()
            with progress_line("reading", len(files), "files") as advance:
                found = gather(files, advance)
            entries = found.entries
            left_out = ", ".join(f"{count:,} {what}" for what, count in found.counts.items() if count)
            say(
                f"{len(entries):,} texts of {found.num_groups:,} packages in {len(files):,} files; left out: {left_out}"
            )
        else:
            notices: list[str] = []
            entries = own_entries(self.plan.texts, self.plan.language, notices)
            for notice in notices:
                say(notice)
            say(f"{len(entries):,} texts")
        say(f"{characters_told(entries)} characters")
        write_rows(self.place.documents, documents(entries))
        write_entries(self.place.entries, entries)
        return None

    def vocabulary_words(self) -> list[str]:
        """Chinese has more characters than a small vocabulary has room for: then the rarest are not in it."""
        characters = Counter(character for entry in self.entries for character in entry.text.lower())
        common = [count for _, count in characters.most_common(CHARACTERS + 1)]
        rare = ["--min-frequency", str(common[-1] + 1)] if len(common) > CHARACTERS else []
        words = ["vocab", "train", str(self.place.documents), "--size", str(VOCABULARY), *rare]
        return [*words, "--out", str(self.place.vocabulary)]

    def corpus_words(self) -> list[str]:
        place = self.place
        words = ["corpus", "build", str(place.documents), "--tokenizer", str(place.vocabulary)]
        return [*words, "--language", self.plan.language, "--out", str(place.corpus)]

    def pretrain_words(self) -> list[str]:
        seconds = max(1, round(60 * self.plan.minutes * PRETRAINING))
        how = ["--recipe", "modernbert", "--size", "mini", "--time", f"{seconds}s", *FAST]
        often = ["--save-every", "200", "--eval-every", "400"]
        return ["pretrain", *how, *often, "--corpus", str(self.place.corpus), "--out", str(self.place.pretraining)]

    def write_labelled(self, say: Say) -> str | None:
        place = self.place
        if not place.rows("labelled", "dev").exists():
            entries = self.entries
            pace = self.pace("classify", self.base, [entry.text for entry in entries], say)
            num_rows = pace.num_texts(self.plan.minutes * CLASSIFIER) // EPOCHS
            train, dev = labelled(entries, num_rows)
            if not train:
                return f"there is only one {self.group} with enough texts, and nothing to tell apart"
            write_rows(place.rows("labelled", "train"), train)
            write_rows(place.rows("labelled", "dev"), dev)
        return None

    def classify_words(self) -> list[str]:
        return [
            *("finetune", "classify"),
            *self._finetune_words(self.base, "labelled", "classifier", EPOCHS),
            "--batch",
            "32",
        ]

    def write_texts(self, say: Say) -> str | None:
        """Both sides of pairs."""
        chosen = shuffled(pairs(learned(self.with_pairs)), "texts")[: SPREAD_BY // 2]
        texts = [{"text": text} for row in chosen for text in row.values()]
        if len(texts) < FEWEST:
            return f"{len(texts):,} texts are too few to tell how vectors lie"
        write_rows(self.place.rows("texts", "train"), texts)
        return None

    def write_pairs(self, say: Say) -> str | None:
        place, usable = self.place, self.with_pairs
        if not place.rows("pairs", "dev").exists():
            train = shuffled(pairs(learned(usable)), "pairs")
            count = self.num_pairs(train, say)
            if count < len(train):
                say(f"{count:,} of {len(train):,} pairs, as many as there is time for")
            most = min(MEASURED, max(FEWEST_HELD_OUT, min(count, len(train)) // SHARE_MEASURED))
            write_rows(place.rows("pairs", "train"), train[:count])
            write_rows(place.rows("pairs", "dev"), shuffled(pairs(held_out(usable)), "held out")[:most])
        return None

    def num_pairs(self, rows: Sequence[Row], say: Say = lambda told: None) -> int:
        """To be learned from, as many as there is time for."""
        # One side after the other: some of them, taken at regular distances, are then of both.
        texts = [row[side] for side in ("text", "other") for row in rows]
        return self.pace("encode", self.spread, texts, say).num_texts(self.plan.minutes * ENCODER) // 2

    def encode_words(self) -> list[str]:
        train = read_rows(self.place.rows("pairs", "train"))
        epochs = min(MOST_EPOCHS, self.num_pairs(train) / len(train))
        words = self._finetune_words(self.spread, "pairs", "encoder", round(max(1.0, epochs), 2))
        return ["finetune", "similarity", "--siamese", *words, "--batch", "64"]

    def _finetune_words(self, base: str, rows: str, out: str, epochs: float) -> list[str]:
        place = self.place
        files = ["--train", str(place.rows(rows, "train")), "--dev", str(place.rows(rows, "dev"))]
        how = ["--epochs", f"{epochs:g}", "--length", str(LENGTH), "--lr", RATES[out][bool(self.plan.base)]]
        return ["--base", base, *files, *how, "--save-every", "100", "--out", str(place / out)]

    def write_collection(self, say: Say) -> str | None:
        if not self.place.collection.exists():
            found = collection(self.entries)
            left_out = ", ".join(f"{count:,} {what}" for what, count in found.left_out.items())
            say(f"{len(found.entries):,} texts can be found{left_out and f'; left out: {left_out}'}")
            rows = [{"name": entry.name, "text": searched(entry)} for entry in found.entries]
            write_rows(self.place.collection, rows)
        return None
