import shlex
from collections.abc import Callable
from dataclasses import replace
from html import escape
from io import StringIO
from pathlib import Path
from shlex import quote

import pytest
from rich.console import Console

from bertie.quickstart.entry import Entry
from bertie.quickstart.finding import Found, Outcome
from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.questions import Question
from bertie.quickstart.results import Classified, Results, example, looked_at
from bertie.quickstart.results_page import answer_table, next_commands, question_table, results_page, score_table

Make = Callable[..., Entry]


def found_by(made: Make, *names: str) -> list[Found]:
    return [Found(made(name, f"What {name} does <b>"), 0.5) for name in names]


def a_result(made: Make) -> Results:
    asked = {"copy a folder": "shutil", "read json": "json", "write [logs]": "logging"}
    folder, json, logs = (Question(question, (accepted,)) for question, accepted in asked.items())
    outcomes = [
        Outcome(
            folder, found_by(made, "os.walk", "shutil.copytree"), found_by(made, "a.b"), found_by(made, "shutil.rmtree")
        ),
        Outcome(json, found_by(made, "csv.reader"), found_by(made, "json.load"), []),
        Outcome(logs, found_by(made, "csv.writer"), [], found_by(made, "logging.log")),
    ]
    seconds = {"gather": 30.0, "pretrain": 210.0}
    return Results({"texts": "5"}, Classified(0.81, None, 12, 300), (0.5, 0.25), 1000, outcomes, seconds)


def printed(table: object) -> str:
    console = Console(width=200, file=StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_places_are_counted_beside_bm25_whatever_they_say(made: Make) -> None:
    results = a_result(made)
    assert results.num_found == (1, 1, 2)
    assert results.num_found_alone == (1, 0)
    text = printed(question_table(results))
    assert "for 1 of 3 questions by meaning, 1 by words" in " ".join(text.split())
    assert "missed by words: 1 in the same texts, 0 in the whole texts" in " ".join(text.split())
    assert "write [logs]" in text
    row = next(line for line in text.splitlines() if "copy a folder" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        *("copy a folder", "2", "–", "1", "os.walk"),
    ]
    scores = printed(score_table(results))
    assert "81.0%" in scores
    assert "scikit-learn is not installed" in scores
    assert "50.0%" in scores
    assert "25.0%" in scores


def test_the_page_has_all_of_it(made: Make, tmp_path: Path) -> None:
    place = Place(tmp_path)
    result = a_result(made)
    text = results_page(result, place, Plan())
    left = '<td class="words">'
    assert f"<td>copy a folder</td><td>2</td><td>–</td><td>1</td>{left}shutil</td>{left}os.walk, shutil" in text
    assert "4.0" in text
    for command in next_commands(result, place, Plan()):
        assert escape(command) in text
    own = Results({}, None, (0.5, 0.5), 10, [], {})
    assert "Which module" not in results_page(own, place, Plan(texts=("a.txt",)))


@pytest.mark.parametrize(
    ("text", "masked"),
    [("It's a small text.", """'It'"'"'s a [MASK] text.'"""), ("数学是一，門学科。", "'数学是一，[MASK]学科。'")],
)
def test_what_to_try_next_is_of_the_users_own_texts(text: str, masked: str, made: Make, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.classifier.mkdir()
    own = replace(a_result(made), example=text)
    commands = "\n".join(next_commands(own, place, Plan(texts=("a.txt",))))
    spaced = next_commands(own, Place(tmp_path / "my own"), Plan(texts=("a.txt",)))
    assert shlex.split(spaced[0])[:4] == ["bertie", "quickstart", "--out", str(tmp_path / "my own")]
    assert f"--ask {quote(text)}" in commands
    assert f"bertie fill {place.pretraining}/model {masked}" in commands
    assert f"bertie predict {place.classifier} {quote(text)}" in commands
    assert "fill" not in "\n".join(next_commands(own, place, Plan(texts=("a.txt",), base="my-model")))


def test_of_few_texts_fewer_are_looked_at(made: Make) -> None:
    """Of seven, ten would always be found."""
    assert [looked_at(count) for count in (7, 13, 50, 150, 1000)] == [1, 1, 5, 10, 10]
    few = replace(a_result(made), num_pairs=7)
    assert "a summary finds its text as the first of 7 held-out ones" in printed(score_table(few))


def test_an_example_is_short_but_says_something(made: Make) -> None:
    texts = ["A rather long sentence about quite a lot of things.", "Short.", "This one says it."]
    assert example([made(f"a.{number}", text) for number, text in enumerate(texts)]) == texts[2]
    assert example([made("a.b", texts[1])]) == texts[1]


def test_answers_stand_beside_each_other(made: Make) -> None:
    text = printed(answer_table("how [so]?", found_by(made, "a.b", "c.d"), found_by(made, "e.f"), 120))
    assert "how [so]?" in text
    first = next(line for line in text.splitlines() if "a.b" in line and "e.f" in line)
    assert first.split("│")[1].strip() == "1"
    assert "What c.d does <b>" in text
