"""Exact match and F1 beside the numbers that the official scripts give for the same answers."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.tasks.metrics.answers import (
    answer_scores,
    best_threshold,
    chinese_exact_match,
    chinese_f1,
    exact_match,
    f1,
    normalize,
    units,
)

# Answers of our own, with what the rules of SQuAD's evaluate-v2.0.py and of cmrc2018_evaluate.py give for each.
OFFICIAL = json.loads(Path(__file__).with_name("official_scores.json").read_text(encoding="utf-8"))


def test_two_hundred_answers_score_as_by_squad() -> None:
    cases = OFFICIAL["squad"]
    assert len(cases) == 200
    for case in cases:
        found = (exact_match(case["golds"], case["predicted"]), f1(case["golds"], case["predicted"]))
        assert found == pytest.approx((case["exact_match"], case["f1"])), case
    kinds = [(case["exact_match"], 0 < case["f1"] < 1) for case in cases]
    assert min(kinds.count(kind) for kind in ((0, False), (0, True), (1, False))) >= 30  # a test of every outcome


def test_chinese_answers_score_as_by_cmrc() -> None:
    for case in OFFICIAL["cmrc"]:
        found = (chinese_exact_match(case["golds"], case["predicted"]), chinese_f1(case["golds"], case["predicted"]))
        assert found == pytest.approx((case["exact_match"], case["f1"])), case


def test_whole_sets_score_as_by_squad() -> None:
    cases = OFFICIAL["squad"]
    found = answer_scores([case["golds"] for case in cases], [case["predicted"] for case in cases])
    assert {name: 100 * value for name, value in found.items()} == pytest.approx(OFFICIAL["squad_total"])


@pytest.mark.parametrize("metric", ["exact_match", "f1"])
def test_the_threshold_is_that_of_squad(metric: str) -> None:
    for example in OFFICIAL["thresholds"]:
        found = best_threshold(example["null_differences"], example[metric], example["has_answer"])
        expected = example[f"best_{metric}"]
        assert 100 * found.score == pytest.approx(expected["score"])
        assert found.value not in example["null_differences"], "rounding must not decide"
        answered = np.array(example["null_differences"]) <= found.value
        scores = np.where(answered, example[metric], ~np.array(example["has_answer"]))
        assert 100 * scores.mean() == pytest.approx(expected["score"])


def test_normalisation() -> None:
    assert normalize("The  U.S. a-b, an (Theatre)\tA") == "us ab theatre"
    assert normalize("“the”") == "“ ”"  # typographic quotes are no punctuation to the script
    assert normalize("The.") == normalize(" ") == ""


def test_the_best_of_several_answers_counts() -> None:
    assert exact_match(["Paris", "the city of Paris"], "City of paris!") == 1.0
    assert f1(["Paris", "city of Paris"], "Paris city") == pytest.approx(0.8)


def test_a_question_without_an_answer() -> None:
    for score in (exact_match, f1, chinese_exact_match, chinese_f1):
        assert score([], "") == 1.0
        assert score([], "Paris") == 0.0
        assert score(["Paris"], "") == 0.0
    scores = answer_scores([["a cat"], [], []], ["cat", "", "dog"])
    assert scores["has_answer_f1"] == 1.0 and scores["no_answer_exact_match"] == 0.5
    assert scores["f1"] == pytest.approx(2 / 3)
    assert set(answer_scores([["a cat"]], ["cat"])) == {"exact_match", "f1"}


def test_chinese_units() -> None:
    assert units("2008年在iphone 4s, 1,000%") == ["2008", "年", "在", "iphone", "4s", ",", "1,000", "%"]
    assert units("") == []


def test_chinese_f1_is_that_of_the_longest_stretch() -> None:
    assert chinese_f1(["北京大学"], "北京的大学") == pytest.approx(2 * 2 / 9)
    assert chinese_f1(["《红楼梦》"], "红楼梦。") == chinese_exact_match(["《红楼梦》"], "红楼梦。") == 1.0
    assert answer_scores([["北京"]], ["北京。"], "chinese") == {"exact_match": 1.0, "f1": 1.0}


examples = st.lists(
    st.tuples(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()),
    min_size=1,
    max_size=10,
)


@given(examples)
def test_no_threshold_is_better_and_the_score_is_what_it_gives(rows: list[tuple[float, float, bool]]) -> None:
    differences, scores, has_answer = (np.array(column) for column in zip(*rows, strict=True))
    scores = np.where(has_answer, scores, 0.0)

    def value(threshold: float) -> float:
        return float(np.where(differences > threshold, ~has_answer, scores).mean())

    found = best_threshold(differences, scores, has_answer)
    assert found.score == pytest.approx(value(found.value))
    assert found.score == pytest.approx(max(value(threshold) for threshold in (-9.0, *differences, 9.0)))
