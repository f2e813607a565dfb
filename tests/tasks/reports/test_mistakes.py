"""The worst mistakes, and how gold and answers are described."""

from collections.abc import Sequence
from typing import Any

import pytest

from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.reports.mistakes import excerpt, find_mistakes, joined
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Example, Task


class Graded(Classify):
    """As wrong as its answer says."""

    def error_severity(self, answer: Answer, gold: Any) -> float:
        return float(answer["wrong"])


def graded(wrong: Sequence[float]) -> tuple[list[Example], list[Answer]]:
    examples = [
        Example((), "no", values={"text": f"text {number}", "label": "no"}, where=f"dev.tsv:{number + 1}")
        for number in range(len(wrong))
    ]
    return examples, [{"label": "yes", "probability": 0.987, "wrong": one} for one in wrong]


def test_the_worst_come_first_and_what_is_right_never() -> None:
    found = find_mistakes(Graded(), *graded([0.0, 1.0, 3.0, 0.0, 3.0, 2.0]))
    assert [one.where for one in found.worst] == ["dev.tsv:3", "dev.tsv:5", "dev.tsv:6", "dev.tsv:2"]
    assert (found.worst[0].texts, found.worst[0].gold, found.worst[0].predicted) == (
        {"text": "text 2"},
        "no",
        "yes (99%)",
    )


def test_a_hundred_of_many() -> None:
    found = find_mistakes(Graded(), *graded(range(300)))
    assert (len(found.worst), found.num_wrong) == (100, 299)
    assert [found.worst[0].error_severity, found.worst[-1].error_severity] == [299, 200]


def test_an_excerpt_tells_what_it_leaves_out() -> None:
    assert excerpt("语言模型", most=4) == "语言模型"
    assert excerpt("abcdefghij", most=4) == "abcd … [6 of 10 characters not shown]"
    assert excerpt("abcdefghij", 5, most=4) == "… defg … [6 of 10 characters not shown]"
    assert excerpt("abcdefghij", 9, most=4) == "… ghij [6 of 10 characters not shown]"


def test_words_as_a_line() -> None:
    assert joined("as it is") == "as it is"
    assert joined(["two", "words"]) == "two words"
    assert joined(["语", "言"]) == "语言"


@pytest.mark.parametrize(
    ("task", "gold", "answer", "expected"),
    [
        (Classify(labels=("a", "b")), "a", {"label": "b"}, ("a", "b")),
        (MultiLabel(labels=("a", "b")), [], {"labels": ["a", "b"]}, ("(none)", "a, b")),
        (
            Aspects(aspects={"price": ("bad", "good"), "food": ("bad", "good")}),
            {"price": "bad", "food": "bad"},
            {"price": "bad", "food": "good"},
            ("food: bad", "food: good"),
        ),
        (
            Tagging(tags=("O", "B-LOC")),
            ["O", "B-LOC", "O"],
            {"words": ["in", "巴黎", "now"], "tags": ["O", "O", "B-LOC"]},
            ("巴黎/B-LOC  now/O", "巴黎/O  now/B-LOC"),
        ),
        (Similarity(), 4.25, {"score": 1 / 3}, ("4.25", "0.3333")),
        (Answering(), ["x", "x", "y"], {"text": "", "start": -1}, ("x | y", "(none)")),
        (Choice(), 0, {"choice": 2, "candidate": "the third"}, ("candidate 0", "candidate 2: the third")),
        (Rank(), ("query", 1), {"score": -2.0}, ("relevant", "score -2")),
    ],
)
def test_gold_and_answers_in_words(task: Task, gold: Any, answer: Answer, expected: tuple[str, str]) -> None:
    assert task.describe(answer, gold) == expected


def test_many_wrong_tags_are_counted() -> None:
    answer: Answer = {"words": ["w"] * 20, "tags": ["A"] * 20}
    gold, told = Tagging(tags=("A", "B")).describe(answer, ["B"] * 20)
    assert told == "  ".join(["w/A"] * 12) + " and 8 more" and gold.startswith("w/B")


class Wrong(Answering):
    def error_severity(self, answer: Answer, gold: Any) -> float:
        return 1.0


@pytest.mark.parametrize(("start", "seen"), [(900, "told"), (-1, "gold")])
def test_a_passage_is_shown_where_the_answer_is(start: int, seen: str) -> None:
    passage = "." * 900 + "told" + "." * 900 + "gold" + "." * 900
    values = {"question": "who?", "passage": passage, "answers": []}
    found = find_mistakes(Wrong(), [Example((), ["gold"], values=values)], [{"text": "told", "start": start}])
    assert seen in found.worst[0].texts["passage"] and list(found.worst[0].texts) == ["question", "passage"]


class WrongChoice(Choice):
    def error_severity(self, answer: Answer, gold: Any) -> float:
        return 1.0


def test_candidates_are_told_apart() -> None:
    values = {"text": "she", "candidates": {"text": ["sat down", "ran"], "label": ["A", "B"]}, "label": "A"}
    examples = [Example((), 0, {"candidates": ["sat down", "ran"]}, values=values)]
    (mistake,) = find_mistakes(WrongChoice(), examples, [{"choice": 1, "candidate": "ran"}]).worst
    assert mistake.texts == {"text": "she", "candidates": "sat down | ran"}
