"""The score of who always says the most frequent thing."""

from typing import Any

import pytest

from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify
from bertie.tasks.metrics.majority import most_frequent
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task

ASPECTS = Aspects(aspects={"price": ("bad", "good"), "food": ("bad", "good")})
MOST = "the most frequent label of each aspect"


def food(price: str, food: str) -> dict[str, str]:
    return {"price": price, "food": food}


@pytest.mark.parametrize(
    ("task", "trained", "measured", "expected"),
    [
        (Classify(labels=("no", "yes")), ["yes", "yes", "no"], ["yes", "no", "no", "no"], ("yes", "accuracy", 0.25)),
        # Of three rows with four labels, "a" is right twice: 2 * 2 / (3 + 4).
        (MultiLabel(labels=("a", "b")), [["a", "b"], ["a"]], [["a"], ["a", "b"], ["b"]], ("a", "f1", 4 / 7)),
        (MultiLabel(labels=("a", "b")), [[], []], [["a"], []], ("no label", "f1", 0.0)),
        # Price: always bad, F1 of bad 2/3 and of good 0; food: always good and always right.
        (
            ASPECTS,
            [food("bad", "good"), food("bad", "good")],
            [food("bad", "good"), food("good", "good")],
            (MOST, "macro_f1", (1 / 3 + 1) / 2),
        ),
        (Similarity(most=5.0), [1.0, 4.0], [1.0, 2.0, 3.0], ("the mean, 2.5", "spearman", 0.0)),
        (
            Tagging(tags=("O", "B-PER"), scheme="IOB2"),
            [["B-PER", "B-PER", "B-PER"]],
            [["O", "B-PER", "O"], ["O"]],
            ("O", "accuracy", 0.75),
        ),
        (Tagging(tags=("DET", "NOUN")), [["DET", "NOUN", "NOUN"]], [["DET", "NOUN"]], ("NOUN", "accuracy", 0.5)),
        (Answering(unanswerable=True), [["x"], []], [["x"], [], []], ("no answer", "f1", 2 / 3)),
        (Choice(), [1, 1, 0], [1, 0, 0, 0], ("candidate 1", "accuracy", 0.25)),
    ],
)
def test_against_figures_made_by_hand(
    task: Task, trained: list[Any], measured: list[Any], expected: tuple[str, str, float]
) -> None:
    found = task.majority(trained, measured)
    assert found is not None
    assert (found.answer, found.metric, found.score) == (expected[0], expected[1], pytest.approx(expected[2]))


@pytest.mark.parametrize("task", [Rank(), Answering()])
def test_some_tasks_have_no_majority(task: Task) -> None:
    gold = [("query", 1)] if isinstance(task, Rank) else [["an answer"]]
    assert task.majority(gold, gold) is None


def test_the_order_of_rows_does_not_decide() -> None:
    assert most_frequent("bbaa") == most_frequent("abab") == "a"
