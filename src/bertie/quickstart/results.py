"""What came of a quickstart: its folder enters; scores beside those of simple methods, and found entries, leave."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertie.data.manifest import write_whole
from bertie.errors import FolderError
from bertie.models.pretrained import load
from bertie.quickstart.baseline import counted_words_accuracy
from bertie.quickstart.entry import Entry, characters_told, read_entries
from bertie.quickstart.finding import TOP, Finder, Outcome, recall, unit
from bertie.quickstart.learning_rows import LENGTH, collection, read_rows
from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.questions import questions
from bertie.quickstart.running import read_times
from bertie.search.bm25 import BM25Index
from bertie.text.one_line import shortened
from bertie.train.run_folder import MODEL, SUMMARY

LOOKED_AT, SAYS_SOMETHING, WIDTH = 100, 12, 60  # texts, and characters and columns of an example


@dataclass(frozen=True)
class Classified:
    accuracy: float
    by_counting: float | None  # None: scikit-learn is not installed
    num_labels: int
    num_rows: int  # that were measured on


@dataclass(frozen=True)
class Results:
    facts: dict[str, str]
    classified: Classified | None  # None: there was nothing to tell apart
    recalled: tuple[float, float]  # of held-out pairs: by meaning, by words
    num_pairs: int
    outcomes: list[Outcome]  # none for a user's own text
    seconds: dict[str, float]
    example: str | None = None  # one of a user's own texts

    @property
    def num_found(self) -> tuple[int, int, int]:
        """Questions with an accepted answer among the first: by meaning, by words, by words in the whole texts."""
        return (
            sum(one.meaning_place is not None for one in self.outcomes),
            sum(one.words_place is not None for one in self.outcomes),
            sum(one.whole_place is not None for one in self.outcomes),
        )

    @property
    def num_found_alone(self) -> tuple[int, int]:
        """By meaning, where words found none in the same texts, and where they found none in the whole texts."""
        found = [one for one in self.outcomes if one.meaning_place is not None]
        return sum(one.words_place is None for one in found), sum(one.whole_place is None for one in found)


def open_finder(place: Place) -> Finder:
    entries, vectors = collection(read_entries(place.entries)).entries, np.load(place.vectors)
    if [entry.name for entry in entries] != [row["name"] for row in read_rows(place.collection)]:
        what = "was made by another version of bertie, which searched in other texts"
        hint = f"remove it and {place.vectors.name}, and run again"
        raise FolderError(what, where=str(place.collection), hint=hint)
    return Finder(load(place.encoder / MODEL), entries, vectors)


def results(place: Place, plan: Plan, finder: Finder) -> Results:
    pairs = read_rows(place.rows("pairs", "dev"))
    asked = questions() if plan.is_documentation else []
    entries = read_entries(place.entries)
    facts = {
        "texts": f"{len(entries):,}",
        "characters": characters_told(entries),
        "that can be found": f"{len(finder.entries):,}",
    }
    return Results(
        facts=facts,
        classified=classified(place),
        recalled=recalled(pairs, finder),
        num_pairs=len(pairs),
        outcomes=[finder.outcome(question) for question in asked],
        seconds=read_times(place),
        example=None if plan.is_documentation else example(entries),
    )


def example(entries: Sequence[Entry]) -> str:
    """A short one that still says something, of the first."""
    told = (entry.summary for entry in entries[:LOOKED_AT])
    return shortened(min(told, key=lambda text: (len(text) < SAYS_SOMETHING, len(text))), WIDTH)


def classified(place: Place) -> Classified | None:
    summary = place.classifier / SUMMARY
    if not summary.exists():
        return None
    train, dev = (read_rows(place.rows("labelled", part)) for part in ("train", "dev"))
    kept = place / "counted_words.json"
    counted = json.loads(kept.read_bytes()) if kept.exists() else counted_words_accuracy(train, dev)
    if counted is not None:
        write_whole(kept, json.dumps(counted).encode())
    accuracy = json.loads(summary.read_bytes())["evaluation"]["accuracy"]
    return Classified(accuracy, counted, len({row["label"] for row in train}), len(dev))


def recalled(pairs: list[dict[str, str]], finder: Finder) -> tuple[float, float]:
    """How often the second text of a held-out pair is among the first that its first text finds."""
    vectors = {
        side: unit(finder.model.encode_report([row[side] for row in pairs], max_length=LENGTH).vectors)
        for side in ("text", "other")
    }
    cosines, top = vectors["text"] @ vectors["other"].T, looked_at(len(pairs))
    words = BM25Index([row["other"] for row in pairs])
    by_words = np.stack([words.scores(row["text"]) for row in pairs])
    return recall(cosines, top), recall(by_words, top)


def looked_at(num_pairs: int) -> int:
    """How many of the first: of few texts fewer, or chance alone would find most."""
    return max(1, min(TOP, num_pairs // TOP))
