"""Scores of pairs, on the scale that people gave them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.learning import learned, read, rows

from bertie.batch import collate
from bertie.errors import InputError
from bertie.tasks.similarity import Similarity
from bertie.tasks.task import Example


def test_the_scale_is_that_of_the_training_data() -> None:
    task = Similarity().fitted(rows(("text", "other", "score"), *(("a", "b", score) for score in (1, "5", 2.5))))
    assert (task.least, task.most, task.summary()) == (1.0, 5.0, "scores from 1 to 5")
    target = read(task, {"text": "a", "other": "b", "score": "2"}).samples[0]["label"]
    assert isinstance(target, np.ndarray) and target == 0.25 and target.dtype == np.float32
    assert task.answer(Example(()), [np.array([0.25], np.float32)]) == {"score": 2.0}
    assert task.error_severity({"score": 2.0}, 3.5) == 1.5


def test_learned_scores_are_near_the_gold_ones() -> None:
    known = learned("similarity")
    told = [answer["score"] for answer in known.answers()]
    np.testing.assert_allclose(told, known.gold, atol=0.5)
    scores = known.task.score(known.answers(), known.gold)
    assert scores["pearson"] > 0.99 and scores["mean_squared_error"] < 0.1
    batch = collate(known.samples)
    head = known.model.heads["similarity"]
    logits = head(known.model.encoder, known.model.encoder(batch).states)[:, 0]
    torch.testing.assert_close(known.model.loss(batch).loss(), (logits - batch.tensor("label")).square().mean())


@pytest.mark.parametrize("cell", ["high", "4,5", math.nan, math.inf, "nan", [1]])
def test_what_is_no_number_is_refused(cell: Any) -> None:
    task = Similarity(least=0, most=5)
    with pytest.raises(InputError, match=r"the score .* is not a number"):
        read(task, {"text": "a", "other": "b", "score": cell})


def test_scores_that_teach_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="every row has the score 3"):
        Similarity().fitted(rows(("text", "other", "score"), ("a", "b", 3), ("a", "b", "3.0")))
    with pytest.raises(InputError, match="no row has a score"):
        Similarity().fitted(rows(("text", "other", "score"), ("a", "b", "?")))
    with pytest.raises(InputError, match="the second text is empty"):
        read(Similarity(), {"text": "a", "score": 1})
