"""One candidate of several, and candidates in order."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.tasks.learning import learned, read, rows

from bertie.batch import collate
from bertie.errors import InputError
from bertie.tasks.choosing import Candidates, Choice, Rank, is_relevant
from bertie.tasks.task import Example

ENDINGS = ["barks", "purrs", "in Rome"]


def choice(label: Any, candidates: Any = ENDINGS) -> dict[str, Any]:
    return {"text": "the cat", "candidates": candidates, "label": label}


# --- which one


@pytest.mark.parametrize("label", [1, "1", 1.0, "B", "b", "purrs", " purrs "])
def test_a_label_is_a_number_a_letter_or_the_candidate(label: Any) -> None:
    example = read(Choice(), choice(label))
    assert example.gold == 1 and example.samples[0]["label"] == 1


def test_labels_from_one_tell_themselves() -> None:
    from_zero = Choice().fitted([choice(1), choice(2), choice(0), choice(3)])
    from_one = Choice().fitted([choice("1"), choice("3"), choice("2")])
    assert (from_zero.numbered_from, from_one.numbered_from) == (0, 1)
    assert from_one.summary() == "candidates are numbered from 1"
    assert Choice().fitted([choice(1), choice(2)]).numbered_from == 0, "as most have it, where nothing tells"
    assert Choice().fitted([choice("A"), choice("purrs")]).numbered_from == 0
    example = read(from_one, choice("3"))
    assert example.gold == 3 and example.samples[0]["label"] == 2
    answer = from_one.answer(example, [np.array([0.0, 1.0, 3.0])])
    assert answer["choice"] == 3 and answer["candidate"] == "in Rome"
    assert from_one.score([answer], [example.gold]) == {"accuracy": 1.0}
    assert (
        from_one.error_severity(answer, 3) == 0 and from_one.error_severity(answer, 2) == 1 - answer["probabilities"][1]
    )
    assert from_one.labels_of(3) == ["3"]


def test_candidates_with_names_of_their_own() -> None:
    cell = {"label": ["1", "2", "3"], "text": ENDINGS}
    assert read(Choice(), choice("1", cell)).gold == 0, "the name, not the number"
    assert Candidates.of({"candidates": cell}).names == ["1", "2", "3"]


def test_labels_that_are_also_texts() -> None:
    assert read(Choice(), choice("3", ["1", "2", "3", "4"])).gold == 2
    assert read(Choice(), choice(30, [10, 20, 30])).context["candidates"] == ["10", "20", "30"]


def test_candidates_that_are_numbers_and_labels_that_count_them() -> None:
    shuffled = ["3", "0", "2", "1"]
    counting = Choice().fitted([choice(label, shuffled) for label in range(4)])
    assert counting.by_number and [read(counting, choice(label, shuffled)).gold for label in range(4)] == [0, 1, 2, 3]
    results = Choice().fitted([choice(label, [7, 12, 4, 9]) for label in (12, 4)])
    assert not results.by_number and read(results, choice(12, [7, 12, 4, 9])).gold == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (choice(3), "the label '3' names none of the 3 candidates"),
        (choice(-1), "the label '-1' names none"),
        (choice("E"), "the label 'E' names none"),
        (choice("meows"), "the label 'meows' names none"),
        (choice(math.nan), "the label is empty"),
        (choice(0, ["barks"]), "there is no list of at least two candidates"),
        (choice(0, "barks"), "there is no list of at least two candidates"),
        (choice(0, ["barks", ""]), "the candidate is empty"),
        (choice(0, ["barks", None]), "the candidate is empty"),
        ({"candidates": ENDINGS, "label": 0}, "the text is empty"),
    ],
)
def test_rows_that_cannot_be_used(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(Choice(), values)


def test_rows_without_candidates_teach_nothing() -> None:
    with pytest.raises(InputError, match="no row has candidates and a label"):
        Choice().fitted([{"text": "a", "label": 1}])


def test_rows_may_have_different_numbers_of_candidates() -> None:
    known = learned("choice")
    answers = known.answers()
    assert [len(answer["probabilities"]) for answer in answers] == [2, 3, 4]
    assert [answer["candidate"] for answer in answers] == ["purrs", "barks", "in Rome"]
    batch = collate(known.samples)
    assert batch.ragged("candidates").sizes == [2, 3, 4]
    assert int(batch.tensor("candidates").sum()) == len(batch.tensor("tokens"))
    logits = known.model.heads["choice"]
    by_hand = []
    for values, example in zip(known.rows, known.examples, strict=True):
        apart = [read(Rank(), {"text": values["text"], "other": one}).samples[0] for one in values["candidates"]]
        scores = torch.cat([logits(known.model.encoder, known.model.encoder(collate([one])).states) for one in apart])
        by_hand.append(F.cross_entropy(scores.T, torch.tensor([example.gold])))
    torch.testing.assert_close(known.model.loss(batch).loss(), torch.stack(by_hand).mean(), atol=1e-5, rtol=1e-4)


def test_what_is_cut_of_all_candidates_is_counted() -> None:
    example = read(Choice(), {"text": "a cat " * 30, "candidates": ["barks", "a dog " * 30]}, length=16)
    lengths = example.samples[0]["candidates"]
    assert isinstance(lengths, np.ndarray) and lengths.tolist() == [16, 16]
    assert example.num_cut == (60 + 1 - 13) + (120 - 13)


# --- in order


@pytest.mark.parametrize(
    ("cell", "relevant"),
    [
        (1, True),
        ("0", False),
        (0.0, False),
        (2, True),
        ("1.0", True),
        (True, True),
        ("no", False),
        ("Relevant", True),
        (-1, False),
    ],
)
def test_relevance_is_yes_or_no_or_a_grade(cell: Any, relevant: bool) -> None:
    assert is_relevant(cell) is relevant


@pytest.mark.parametrize(("cell", "message"), [("maybe", "'maybe' is neither yes, no nor a number"), ("", "is empty")])
def test_what_is_no_relevance(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(Rank(), {"text": "a", "other": "b", "relevance": cell})


def test_one_kind_of_relevance_teaches_nothing() -> None:
    with pytest.raises(InputError, match="every row has the relevance 'not relevant'"):
        Rank().fitted(rows(("text", "other", "relevance"), ("a", "b", 0), ("a", "c", "no")))


def test_rows_of_a_query_need_not_be_neighbours() -> None:
    """Two queries, their candidates mixed: the right one is second and first."""
    task = Rank()
    gold = [("q", 1), ("r", 0), ("q", 0), ("r", 1), ("q", 0)]
    answers = [{"score": score, "probability": 0.5} for score in (0.2, -1.0, 0.9, 3.0, 0.1)]
    scores = task.score(answers, gold)
    assert scores["mrr"] == (1 / 2 + 1) / 2 and scores["accuracy_at_1"] == 0.5
    apart = sorted(zip(gold, answers, strict=True), key=lambda pair: pair[0][0])
    assert task.score([answer for _, answer in apart], [one for one, _ in apart]) == scores
    assert task.score([], []) == {"mrr": 0.0, "accuracy_at_1": 0.0, "map": 0.0}


def test_rows_of_one_query_are_known_by_its_text() -> None:
    examples = [read(Rank(), {"text": text, "other": "b", "relevance": 1}) for text in ("who?", " who? ")]
    assert examples[0].gold == examples[1].gold == ("who?", 1)
    assert read(Rank(), {"text": "who?", "other": "b"}).gold is None
    with pytest.raises(InputError, match="the second text is empty"):
        read(Rank(), {"text": "who?", "relevance": 1})


def test_a_score_is_a_logit_and_its_probability() -> None:
    task = Rank()
    answer = task.answer(Example(()), [np.array([-2.0], np.float32)])
    assert answer == {"score": -2.0, "probability": pytest.approx(0.119203, abs=1e-6)}
    assert task.error_severity(answer, ("q", 0)) == 0
    assert task.error_severity(answer, ("q", 1)) == pytest.approx(1 - 0.119203, abs=1e-6)
    assert task.label_pairs([answer], [("q", 1)]) == {"candidate": [("relevant", "not relevant")]}
