"""Scores of spans, by hand and beside those of `seqeval`."""

import json
from pathlib import Path

import numpy as np
import pytest

from bertie.tasks.metrics.entities import (
    entity_counts,
    entity_scores,
    entity_scores_by_label,
    f1_of_sums,
    token_accuracy,
)
from bertie.text.tag_schemes import SchemeName

# Random tags, most of them broken, with what `seqeval` 1.2.2 gives for them by default and in strict mode.
SEQEVAL = json.loads(Path(__file__).with_name("seqeval_scores.json").read_text(encoding="utf-8"))
GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "I-ORG", "I-ORG", "O"], ["O"]]
PREDICTED = [["B-PER", "I-PER", "O", "B-ORG"], ["O", "B-ORG", "I-ORG", "O", "O"], ["O"]]


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
def test_broken_tags_score_as_by_seqeval(scheme: SchemeName) -> None:
    cases = [case for case in SEQEVAL if case["scheme"] == scheme]
    assert len(cases) == 30
    for case in cases:
        gold, predicted = ([tags.split() for tags in case[side]] for side in ("gold", "predicted"))
        assert entity_scores(gold, predicted) == pytest.approx(case["default"])
        strictly = entity_scores(gold, predicted, scheme)
        assert {name: strictly[name] for name in case["strict"]} == pytest.approx(case["strict"])


def test_a_span_is_right_with_its_label_and_both_ends() -> None:
    found = entity_scores(GOLD, PREDICTED)
    assert found["precision"] == found["recall"] == found["f1"] == pytest.approx(1 / 3)
    assert found["accuracy"] == token_accuracy(GOLD, PREDICTED) == 0.8
    assert found["macro_f1"] == pytest.approx((1 + 0 + 0) / 3)
    assert entity_scores(GOLD, GOLD)["f1"] == 1.0


def test_scores_of_each_label() -> None:
    found = entity_scores_by_label(GOLD, PREDICTED)
    assert list(found) == ["LOC", "ORG", "PER"]
    assert found["PER"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1.0}
    assert found["ORG"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1.0}
    assert found["LOC"]["support"] == 1.0


def test_counts_of_sentences_sum_to_f1() -> None:
    counts = entity_counts(GOLD, PREDICTED)
    assert counts.tolist() == [[1, 2, 2], [0, 1, 1], [0, 0, 0]]
    assert float(f1_of_sums(counts.sum(0))) == entity_scores(GOLD, PREDICTED)["f1"]


def test_broken_predictions_count_by_default_and_not_in_strict_mode() -> None:
    gold, predicted = [["B-PER", "I-PER", "O"]], [["I-PER", "I-PER", "O"]]
    assert entity_scores(gold, predicted)["f1"] == 1.0
    assert entity_scores(gold, predicted, scheme="IOB2")["f1"] == 0.0
    assert entity_scores(gold, [["B-PER", "E-PER", "O"]], scheme="IOB2")["f1"] == 0.0


def test_a_span_does_not_reach_into_the_next_sentence() -> None:
    gold, predicted = [["B-PER"], ["I-PER"]], [["B-PER"], ["B-PER"]]
    assert entity_scores(gold, predicted)["f1"] == 1.0


def test_nothing_to_find_and_nothing_found() -> None:
    assert entity_scores([["O"]], [["O"]]) == {
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
        "macro_f1": 0.0,
        "accuracy": 1.0,
    }
    assert entity_scores([], [])["accuracy"] == 0.0
    assert np.array_equal(entity_counts([], []), np.zeros((0, 3)))


def test_a_tag_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="sentence 1 has 2 words but 1 predicted tags"):
        entity_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="zip"):
        entity_scores([["O"]], [])
