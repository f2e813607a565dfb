"""Results of a quickstart to read: `Results` enter; a page that stands alone and tables for a terminal leave."""

from collections.abc import Sequence
from html import escape
from shlex import join

from rich.markup import escape as escape_markup
from rich.table import Table

from bertie.inspection.page import fact_cards, page, section, table
from bertie.quickstart.finding import TOP, Found, Outcome
from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.results import Results, looked_at
from bertie.text.one_line import shortened
from bertie.train.run_folder import MODEL

SHOWN = 3  # entries of an answer in a table
NOT_FOUND = "–"
QUESTION_HEAD = ("question", "by meaning", "BM25", "BM25, whole texts", "accepted", "first by meaning", "first by BM25")
EXAMPLES = ("how do I sort a list?", "Return a [MASK] of the string.", "Return the eigenvalues of a matrix.")
SHORT_HEAD = ("question", "by meaning", "BM25", "BM25, whole texts", "first by meaning")


def results_page(found: Results, place: Place, plan: Plan) -> str:
    seconds = sum(found.seconds.values())
    parts = [
        fact_cards({**found.facts, "minutes in all": f"{seconds / 60:.1f}"}),
        section("What was learned", table(("", "this model", "counting words"), score_rows(found))),
    ]
    if found.outcomes:
        told = f"{questions_told(found)} Numbers are the place of the first accepted module."
        parts.append(section("Which module does this?", _note(told) + _questions(found.outcomes)))
    parts.append(
        section("Time", table(("stage", "seconds"), [(name, f"{one:.0f}") for name, one in found.seconds.items()]))
    )
    commands = escape("\n".join(next_commands(found, place, plan)))
    parts.append(section("Try next", f'<div class="scroll"><pre>{commands}</pre></div>'))
    return page("bertie quickstart", parts)


def score_rows(found: Results) -> list[tuple[str, str, str]]:
    rows = []
    if found.classified is not None:
        one = found.classified
        counted = "scikit-learn is not installed" if one.by_counting is None else f"{one.by_counting:.1%}"
        what = f"which of {one.num_labels} is a text from? ({one.num_rows:,} held-out rows)"
        rows.append((what, f"{one.accuracy:.1%}", counted))
    meaning, words = found.recalled
    top = looked_at(found.num_pairs)
    among = f"among the first {top}" if top > 1 else "as the first"
    what = f"a summary finds its text {among} of {found.num_pairs:,} held-out ones"
    rows.append((what, f"{meaning:.1%}", f"{words:.1%}"))
    if found.outcomes:
        by_meaning, by_words, in_whole = found.num_found
        what = f"of {len(found.outcomes)} questions an accepted module is among the first {TOP}"
        rows.append((what, str(by_meaning), f"{by_words}; {in_whole} in the whole texts"))
    return rows


def questions_told(found: Results) -> str:
    by_meaning, by_words, in_whole = found.num_found
    alone, alone_in_whole = found.num_found_alone
    return (
        f"An accepted module is among the first {TOP} for {by_meaning} of {len(found.outcomes)} questions by meaning, "
        f"{by_words} by words (BM25) in the same texts (names and summaries), {in_whole} by words in the whole texts. "
        f"Found by meaning and missed by words: {alone} in the same texts, {alone_in_whole} in the whole texts."
    )


def question_row(outcome: Outcome) -> tuple[str, ...]:
    question = outcome.question
    first = (names(side[:SHOWN]) for side in (outcome.by_meaning, outcome.by_words))
    return (question.question, *places(outcome), ", ".join(question.accepted), *first)


def places(outcome: Outcome) -> tuple[str, str, str]:
    meaning, words, whole = outcome.meaning_place, outcome.words_place, outcome.whole_place
    return str(meaning or NOT_FOUND), str(words or NOT_FOUND), str(whole or NOT_FOUND)


def names(found: Sequence[Found]) -> str:
    return ", ".join(one.entry.name for one in found)


def question_table(found: Results) -> Table:
    """For a terminal, narrower than the page's. Places are those of the first accepted module."""
    shown = Table(*SHORT_HEAD, title=questions_told(found), title_justify="left")
    for outcome in found.outcomes:
        cells = (outcome.question.question, *places(outcome), names(outcome.by_meaning[:1]))
        shown.add_row(*map(escape_markup, cells))
    return shown


def score_table(found: Results) -> Table:
    shown = Table("", "this model", "counting words", title="What was learned", title_justify="left")
    for row in score_rows(found):
        shown.add_row(*row)
    return shown


def answer_table(question: str, by_meaning: Sequence[Found], by_words: Sequence[Found], width: int) -> Table:
    shown = Table("", "by meaning", "by words (BM25)", title=escape_markup(question), title_justify="left")
    for number in range(max(len(by_meaning), len(by_words))):
        sides = [
            answer_told(side[number], width // 2 - 8) if number < len(side) else "" for side in (by_meaning, by_words)
        ]
        shown.add_row(str(number + 1), *map(escape_markup, sides))
    return shown


def answer_told(found: Found, columns: int) -> str:
    return f"{shortened(found.entry.name, columns)}\n{shortened(found.entry.summary, columns)}"


def next_commands(found: Results, place: Place, plan: Plan) -> list[str]:
    question, masked, text = EXAMPLES if found.example is None else examples_of(found.example)
    language = [] if plan.language == "en" else ["--lang", plan.language]
    own = [
        ["runs", "show", str(place.pretraining)],
        ["fill", str(place.pretraining / MODEL), masked],
    ]
    vectors = str(place / "summaries.npy")
    commands = [
        ["quickstart", "--out", str(place.folder), "--ask", question],
        *([] if plan.base else own),
        *([["predict", str(place.classifier), text]] if place.classifier.exists() else []),
        ["embed", str(place.encoder / MODEL), str(place.rows("pairs", "dev")), "--out", vectors],
        ["quickstart", "--text", "YOUR-TEXTS.txt", *language, "--out", "my-own"],
        ["--help"],
    ]
    return [f"bertie {join(words)}" for words in commands]


def examples_of(text: str) -> tuple[str, str, str]:
    """A text to ask for, one with a masked word or, where there are no spaces, sign, and one to be told apart."""
    words, between = (text.split(), " ") if " " in text else (list(text), "")
    middle = len(words) // 2
    masked = next((place for place in range(middle, len(words)) if words[place].isalnum()), middle)
    return text, between.join([*words[:masked], "[MASK]", *words[masked + 1 :]]), text


def _questions(outcomes: Sequence[Outcome]) -> str:
    return table(QUESTION_HEAD, [question_row(outcome) for outcome in outcomes])


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'
