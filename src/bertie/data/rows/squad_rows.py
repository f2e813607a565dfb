"""Reads questions on passages: SQuAD 1.1 and 2.0, and files in their format. A row is a question. The file is held in
memory; a passage once for its questions."""

import json
from collections.abc import Iterator
from typing import Any

from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.json_rows import decode_whole, json_reason
from bertie.data.rows.rows import Row, RowError, Rows
from bertie.errors import InputError

LAYOUT = 'the layout is {"data": [{"paragraphs": [{"context": ..., "qas": [{"question": ..., "answers": [...]}]}]}]}'


class SquadRows(Rows):
    """`answers` is a list of {"text", "answer_start"}, empty where the passage has none; `is_impossible` is False in
    files of version 1.1. Nothing is checked of where an answer stands: that is the task's business."""

    columns = ("id", "title", "context", "question", "answers", "is_impossible")

    def __init__(self, source: FileBytes):
        self.name, self.notices = source.name, []
        text = decode_whole(source)
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
            what = f"not valid JSON ({json_reason(error)})"
            raise InputError(what, where=f"{self.name}:{line}", hint="is the file cut off?") from None
        self._questions = list(self._find_questions(content))
        self.num_rows = len(self._questions)

    def _read(self, number: int) -> Row:
        title, context, question = self._questions[number]
        where = f"{self.name}: question {_name(question, number)}"
        if not isinstance(question, dict) or not isinstance(question.get("question"), str):
            raise RowError("it has no text 'question'", where=where, kind="no question", hint=LAYOUT)
        if not isinstance(context, str):
            raise RowError("its paragraph has no text 'context'", where=where, kind="no context", hint=LAYOUT)
        answers = question.get("answers", [])
        if not isinstance(answers, list) or not all(map(_is_answer, answers)):
            what = "an answer is not an object with a text 'text' and a whole number 'answer_start'"
            raise RowError(what, where=where, kind="not an answer", hint=LAYOUT)
        values = {
            "id": _name(question, number),
            "title": title,
            "context": context,
            "question": question["question"],
            "answers": answers,
            "is_impossible": bool(question.get("is_impossible", False)),
        }
        return Row(values, where)

    def _find_questions(self, content: Any) -> Iterator[tuple[str, Any, Any]]:
        """Title, passage and question."""
        for article in self._list(content, "data", "the file"):
            title = article.get("title", "") if isinstance(article, dict) else ""
            for paragraph in self._list(article, "paragraphs", f"the article {title!r}"):
                for question in self._list(paragraph, "qas", f"a paragraph of the article {title!r}"):
                    yield title, paragraph.get("context"), question

    def _list(self, holder: Any, field: str, what: str) -> list[Any]:
        found = holder.get(field) if isinstance(holder, dict) else None
        if not isinstance(found, list):
            raise InputError(f"{what} has no list {field!r}", where=self.name, hint=LAYOUT)
        return found


def _name(question: Any, number: int) -> str:
    """Its id; a question without one is named by its number."""
    name = question.get("id") if isinstance(question, dict) else None
    return f"number {number + 1}" if name is None else str(name)


def _is_answer(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    return isinstance(answer.get("text"), str) and type(answer.get("answer_start")) is int
