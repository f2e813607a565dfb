"""Cells of people's tables as labels."""

import math
from typing import Any

import numpy as np
import pytest

from bertie.errors import InputError
from bertie.tasks.label_sets import at_least_two, known, label_of, listed, one_label_scores, one_of, sorted_labels


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("positive", "positive"),
        (" very  good ", "very  good"),
        (1, "1"),
        (1.0, "1"),
        (-1.0, "-1"),
        (0.5, "0.5"),
        ("1.0", "1.0"),
        (True, "True"),
        (0, "0"),
        ("好评", "好评"),
    ],
)
def test_labels_of_cells(cell: Any, label: str) -> None:
    assert label_of(cell) == label


@pytest.mark.parametrize("cell", [None, "", " \t", math.nan])
def test_empty_cells_are_no_labels(cell: Any) -> None:
    with pytest.raises(InputError, match="the label is empty"):
        label_of(cell)


def test_several_labels_are_not_one() -> None:
    with pytest.raises(InputError, match="the mood is list, not one label"):
        label_of(["good"], "mood")


def test_numbers_are_in_their_order_and_words_in_theirs() -> None:
    assert sorted_labels(["10", "9", "-1", "9", "1.5"]) == ("-1", "1.5", "9", "10")
    assert sorted_labels(["b", "a", "10"]) == ("10", "a", "b")
    assert sorted_labels(["nan", "inf", "1"]) == ("1", "inf", "nan"), "words that Python would take for numbers"
    assert sorted_labels(["²", "1"]) == ("1", "²")


def test_one_label_teaches_nothing() -> None:
    assert at_least_two(("a", "b"), "label") == ("a", "b")
    with pytest.raises(InputError, match="every row has the label 'a'; at least two are needed"):
        at_least_two(("a",), "label")
    with pytest.raises(InputError, match="no row has a tag"):
        at_least_two((), "tag")


def test_a_label_that_training_never_saw_is_named() -> None:
    assert known("a b", ("a b", "c")) == "a b"
    with pytest.raises(InputError, match="the label 'd' is not in the training data"):
        known("d", ("a b", "c"))


def test_many_labels_are_not_all_listed() -> None:
    assert listed(["no", "yes"]) == "no, yes"
    assert listed([str(number) for number in range(1234)]).endswith("8, 9 and 1,224 more")


def test_the_label_with_the_highest_logit_is_told() -> None:
    answer = one_of(("no", "yes", "so"), np.array([0.0, math.log(3), 0.0], np.float32))
    assert answer["label"] == "yes" and answer["probability"] == pytest.approx(0.6)
    assert answer["probabilities"] == pytest.approx({"no": 0.2, "yes": 0.6, "so": 0.2})


def test_f1_is_that_of_the_second_of_two_labels() -> None:
    gold, told = ["0", "1", "1", "0"], ["0", "1", "0", "0"]
    scores = one_label_scores(gold, told, ("0", "1"))
    assert scores["accuracy"] == 0.75
    assert scores["f1"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0.8) / 2)
    three = one_label_scores(gold, told, ("0", "1", "2"))
    assert three["f1"] == three["macro_f1"] == scores["macro_f1"]
