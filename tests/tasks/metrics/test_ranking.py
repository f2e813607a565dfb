"""Scores of ranking beside scikit-learn's and by hand."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.tasks.metrics.ranking import group_scores, ranking_scores, retrieval_ranks

groups_of_candidates = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=6)


@settings(max_examples=30)
@given(groups_of_candidates)
def test_groups_in_any_order_equal_scikit_learn(relevances: list[list[bool]]) -> None:
    generator = np.random.default_rng(sum(map(len, relevances)))
    rows = [(f"q{group}", is_relevant) for group, row in enumerate(relevances) for is_relevant in row]
    order = generator.permutation(len(rows))
    names, relevant = [rows[place][0] for place in order], np.array([rows[place][1] for place in order])
    scores = generator.permutation(len(rows)).astype(float)
    found = ranking_scores(names, scores, relevant)
    precisions, ranks = [], []
    for name in set(names):
        inside = np.array([other == name for other in names])
        if not relevant[inside].any():
            continue
        precisions.append(
            sklearn.metrics.average_precision_score(relevant[inside], scores[inside]) if inside.sum() > 1 else 1.0
        )
        by_score = relevant[inside][np.argsort(-scores[inside])]
        ranks.append(1 + int(np.argmax(by_score)))
    if not ranks:
        assert set(found.values()) == {0.0}
        return
    assert found["map"] == pytest.approx(np.mean(precisions))
    assert found["mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert found["accuracy_at_1"] == pytest.approx(np.mean([rank == 1 for rank in ranks]))


def test_equal_scores_earn_nothing_by_the_order_of_the_file() -> None:
    relevant_first = ranking_scores(["q"] * 4, [0.5] * 4, [1, 0, 0, 0])
    assert relevant_first == ranking_scores(["q"] * 4, [0.5] * 4, [0, 0, 0, 1])
    assert relevant_first == {"mrr": 0.25, "accuracy_at_1": 0.0, "map": 0.25}


def test_groups_without_a_relevant_candidate_are_left_out_and_counted() -> None:
    found = group_scores(["a", "b", "a", "c"], [1.0, 1.0, 2.0, 1.0], [1, 0, 0, 1])
    assert found.reciprocal_ranks.tolist() == [0.5, 1.0]
    assert found.first_right.tolist() == [False, True]
    assert found.num_without_relevant == 1
    assert ranking_scores([], [], []) == {"mrr": 0.0, "accuracy_at_1": 0.0, "map": 0.0}


def test_several_relevant_candidates() -> None:
    found = ranking_scores(["q"] * 4, [4, 3, 2, 1], [0, 1, 0, 1])
    assert found == {"mrr": 0.5, "accuracy_at_1": 0.0, "map": (1 / 2 + 2 / 4) / 2}


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 groups, 1 scores and 2 relevances"):
        ranking_scores(["a", "a"], [1.0], [1, 0])


def test_places_of_the_right_candidates() -> None:
    candidates = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.6, 0.8]])
    queries = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = retrieval_ranks(queries, candidates, np.array([0, 1, 2]))
    assert found.tolist() == [1, 4, 3], "of equal ones the last"


def test_places_do_not_depend_on_how_many_queries_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries, candidates, right = rng.normal(size=(9, 4)), rng.normal(size=(6, 4)), rng.integers(0, 6, 9)
    whole = retrieval_ranks(queries, candidates, right)
    monkeypatch.setattr("bertie.tasks.metrics.ranking.QUERIES", 2)
    assert retrieval_ranks(queries, candidates, right).tolist() == whole.tolist()
