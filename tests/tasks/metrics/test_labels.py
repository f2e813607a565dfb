"""Scores of labels beside those of scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.tasks.metrics.labels import (
    accuracy,
    binary_scores,
    confusion,
    f1,
    label_scores,
    macro_f1,
    matthews,
    micro_f1,
    multi_label_scores,
    tune_thresholds,
    weighted_f1,
)


def both(labels: list[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(st.sampled_from(labels), st.sampled_from(labels)), min_size=1, max_size=30)


def split(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [gold for gold, _ in pairs], [predicted for _, predicted in pairs]


@settings(max_examples=25)  # scikit-learn takes its time
@given(both(["a", "b", "c", "d"]) | both(["no", "yes"]))
def test_every_score_of_one_label_equals_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = split(pairs)
    for score, average in ((macro_f1, "macro"), (micro_f1, "micro"), (weighted_f1, "weighted")):
        expected = sklearn.metrics.f1_score(gold, predicted, average=average, zero_division=0)
        assert score(gold, predicted) == pytest.approx(expected)
    assert accuracy(gold, predicted) == pytest.approx(sklearn.metrics.accuracy_score(gold, predicted))
    assert matthews(gold, predicted) == pytest.approx(sklearn.metrics.matthews_corrcoef(gold, predicted))
    columns = sklearn.metrics.precision_recall_fscore_support(gold, predicted, zero_division=0)
    mine = label_scores(gold, predicted)
    assert list(mine) == sorted({*gold, *predicted})
    for name, column in zip(("precision", "recall", "f1", "support"), columns, strict=True):
        assert [scores[name] for scores in mine.values()] == pytest.approx(column.tolist())


@settings(max_examples=25)
@given(both(["no", "yes"]))
def test_two_labels(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = split(pairs)
    for positive in ("no", "yes"):
        expected = sklearn.metrics.f1_score(gold, predicted, pos_label=positive, zero_division=0)
        assert f1(gold, predicted, positive) == pytest.approx(expected)
    if len({*gold, *predicted}) == 2:
        assert f1(gold, predicted) == f1(gold, predicted, "yes")


def test_the_positive_label_is_not_guessed_from_one_or_three() -> None:
    with pytest.raises(ValueError, match=r"name the positive label: \[0\] are not two"):
        f1([0, 0], [0, 0])
    with pytest.raises(ValueError, match="name the positive label"):
        f1([0, 1, 2], [0, 0, 0])
    assert binary_scores([0, 0], [0, 0], 1) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0.0}


@settings(max_examples=25)
@given(both(["a", "b", "c"]))
def test_confusion_in_the_order_of_the_labels(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = split(pairs)
    labels = ["c", "a", "never", "b"]
    expected = sklearn.metrics.confusion_matrix(gold, predicted, labels=labels)
    assert confusion(gold, predicted, labels).tolist() == expected.tolist()


def test_lists_of_unequal_length_are_refused() -> None:
    for score in (accuracy, macro_f1, matthews, confusion):
        with pytest.raises(ValueError, match="zip"):
            score(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="do not belong together"):
        multi_label_scores([[1, 0]], [[1]])


def test_no_example_at_all_scores_nothing() -> None:
    assert accuracy([], []) == macro_f1([], []) == weighted_f1([], []) == matthews([], []) == 0.0


rows = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.tuples(st.booleans(), st.booleans()), min_size=width, max_size=width), min_size=1, max_size=12
    )
)


@settings(max_examples=25)
@given(rows)
def test_several_labels_equal_scikit_learn(cells: list[list[tuple[bool, bool]]]) -> None:
    gold, predicted = np.moveaxis(np.array(cells, dtype=int), 2, 0)
    found = multi_label_scores(gold.tolist(), predicted.tolist())
    # One column alone would be taken for single labels.
    wide = [np.hstack([column, np.zeros((len(column), 1), int)]) for column in (gold, predicted)]
    micro = sklearn.metrics.precision_recall_fscore_support(*wide, average="micro", zero_division=0)
    assert [found[name] for name in ("precision", "recall", "micro_f1")] == pytest.approx(micro[:3])
    macro = sklearn.metrics.f1_score(*wide, average=None, zero_division=0)[:-1].mean()
    assert found["macro_f1"] == pytest.approx(macro)
    assert found["exact_match"] == pytest.approx(sklearn.metrics.accuracy_score(*wide))


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.45, 0.5, 0.55, 0.7, 0.9, 1.0]), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_no_threshold_is_better_than_the_tuned_one(examples: list[tuple[float, bool]]) -> None:
    scores = np.array([[score] for score, _ in examples])
    gold = np.array([[is_gold] for _, is_gold in examples])
    (tuned,) = tune_thresholds(scores, gold)

    def value(threshold: float) -> float:
        return multi_label_scores(gold, scores >= threshold)["macro_f1"]

    assert value(tuned) == max(value(threshold) for threshold in (0.0, *scores[:, 0], 2.0))


def test_thresholds_lie_between_scores_and_each_label_has_its_own() -> None:
    scores = [[0.9, 0.3, 0.2], [0.8, 0.1, 0.6], [0.2, 0.2, 0.7], [0.1, 0.05, 0.1]]
    gold = [[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert tune_thresholds(scores, gold) == pytest.approx([0.5, 0.15, 0.5])
    assert tune_thresholds(scores, gold, default=0.3)[2] == 0.3  # never gold: the default
    assert tune_thresholds([[0.9], [0.8]], [[1], [1]]) == [0.5]  # all are gold: no reason to ask for more
