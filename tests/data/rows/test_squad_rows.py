"""Questions on passages, both versions; what is wrong is named by its question."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.data.rows import RowError, open_rows
from bertie.errors import InputError

Writer = Callable[[str, str | bytes], Path]

ANSWER = {"text": "Paris", "answer_start": 0}


def file_of(questions: list[Any], context: Any = "Paris is large.", title: str = "France") -> str:
    return json.dumps(
        {"version": "x", "data": [{"title": title, "paragraphs": [{"context": context, "qas": questions}]}]}
    )


def test_one_row_a_question(write: Writer) -> None:
    known = {"id": "q1", "question": "Which?", "answers": [ANSWER]}
    unknown = {"id": "q2", "question": "Who?", "answers": [], "is_impossible": True, "plausible_answers": [ANSWER]}
    rows = open_rows([write("a.json", file_of([known, unknown]))])
    assert rows.columns == ("id", "title", "context", "question", "answers", "is_impossible")
    first, second = (row.values for row in rows)
    assert first == {**known, "title": "France", "context": "Paris is large.", "is_impossible": False}
    assert second["answers"] == [] and second["is_impossible"] is True
    assert rows.row(1).where == f"{rows.name}: question q2"


@pytest.mark.parametrize(
    ("question", "context", "message"),
    [
        ({"id": "q1", "answers": []}, "x", "a.json: question q1: it has no text 'question'"),
        ({"question": "Which?", "answers": [{"text": "a"}]}, "x", "a.json: question number 1: an answer is not"),
        ({"id": "q1", "question": "Which?", "answers": {"text": ["a"]}}, "x", "question q1: an answer is not"),
        ({"id": "q1", "question": "Which?"}, None, "question q1: its paragraph has no text 'context'"),
        (7, "x", "question number 1: it has no text 'question'"),
    ],
)
def test_a_wrong_question_is_named(write: Writer, question: Any, context: Any, message: str) -> None:
    good = {"id": "q9", "question": "Which?", "answers": [ANSWER]}
    rows = open_rows([write("a.json", file_of([question, good], context))])
    with pytest.raises(RowError) as raised:
        rows.row(0)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [{"paragraphs": [\n{"context": "a", "qas": [', "a.json:2: not valid JSON"),
        ('{"data": {"paragraphs": 1}}', "a.json: the file has no list 'data'"),
        ('{"data": [{"title": "T", "paragraphs": 1}]}', "a.json: the article 'T' has no list 'paragraphs'"),
        ('{"data": [{"title": "T", "paragraphs": [{}]}]}', "a paragraph of the article 'T' has no list 'qas'"),
    ],
)
def test_another_layout_is_refused(write: Writer, content: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        open_rows([write("a.json", content)])
    assert message in str(raised.value)
