"""Labels of texts: what is learned from tables as people have them, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.tasks.learning import TINY, answers_to, learned, new_model, read, rows

from bertie.batch import collate
from bertie.errors import InputError
from bertie.tasks.aspects import Aspects
from bertie.tasks.classification import Classify, Pair
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.task import Example


def fitted(*labels: Any) -> Classify:
    return Classify().fitted(rows(("text", "label"), *(("a", label) for label in labels)))


# --- one label


def test_labels_from_csv_and_from_json_are_the_same() -> None:
    assert fitted("1", "0").labels == fitted(0, 1).labels == fitted(1.0, 0.0).labels == ("0", "1")
    assert fitted(True, False).labels == fitted("True", "False").labels == ("False", "True")
    assert fitted("very good", " not good ", "10", "9").labels == ("10", "9", "not good", "very good")
    assert fitted("0", 1).summary() == "2 labels: 0, 1; f1 is that of '1'"
    example = read(fitted("0", "1"), {"text": "a", "label": 1})
    assert example.gold == "1" and example.samples[0]["label"] == 1


def test_rows_are_read_one_by_one_and_those_without_a_label_tell_nothing() -> None:
    asked: list[int] = []

    def lazily() -> Any:
        for number, label in enumerate(["a", None, math.nan, "", "b"]):
            asked.append(number)
            yield {"text": "x", "label": label}

    assert Classify().fitted(lazily()).labels == ("a", "b") and asked == [0, 1, 2, 3, 4]


def test_one_kind_of_label_is_refused() -> None:
    with pytest.raises(InputError, match="every row has the label '1'; at least two are needed"):
        fitted(1, "1")
    with pytest.raises(InputError, match="no row has a label"):
        fitted("", None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "a", "label": "c"}, "the label 'c' is not in the training data"),
        ({"text": "a", "label": ""}, "the label is empty"),
        ({"text": "a", "label": math.nan}, "the label is empty"),
        ({"text": " ", "label": "a"}, "the text is empty"),
        ({"text": math.nan, "label": "a"}, "the text is empty"),
        ({"text": 7, "label": "a"}, "the text is int, not a text"),
        ({"label": "a"}, "the text is empty"),
    ],
)
def test_rows_that_cannot_be_used(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(fitted("a", "b"), values)


def test_whether_there_is_a_second_text_is_as_in_training() -> None:
    pairs = rows(("text", "other", "label"), ("a cat", "purrs", 1), ("a cat", "barks", 0))
    single, double = fitted(0, 1), Classify().fitted(pairs)
    assert (single.pair, double.pair, Pair().fitted(pairs).pair) == (False, True, True)
    with_other = {"text": "a cat", "other": "purrs"}
    assert read(single, with_other).samples[0]["segments"].max() == 0  # type: ignore[union-attr]
    assert read(double, with_other).samples[0]["segments"].max() == 1  # type: ignore[union-attr]
    for task in (double, Pair(labels=("0", "1"))):
        with pytest.raises(InputError, match="the second text is empty"):
            read(task, {"text": "a cat"})
    for values in (with_other, {"text": "a cat"}):  # a model of others: as the row has it
        assert read(Classify(labels=("0", "1")), values).samples[0]["segments"].max() == int("other" in values)  # type: ignore[union-attr]


def test_the_loss_is_the_formula() -> None:
    """Pooler, output and cross entropy by hand, from the encoder's first states."""
    task = fitted("a", "b", "c")
    model = new_model(task)
    examples = [read(task, {"text": text, "label": label}) for text, label in (("a cat sat", "c"), ("bad", "a"))]
    batch = collate([example.samples[0] for example in examples])
    first = torch.stack([row[0] for row in model.encoder(batch).states.rows()])
    dense, output = model.get_submodule("encoder.pooler.dense"), model.get_submodule("heads.classify.output")
    logits = torch.tanh(first @ dense.weight.T + dense.bias) @ output.weight.T + output.bias  # type: ignore[operator]
    by_hand = F.cross_entropy(logits, torch.tensor([2, 0]))
    torch.testing.assert_close(model.loss(batch).loss(), by_hand)
    told = [answer["probabilities"] for answer in answers_to(task, model, examples)]
    np.testing.assert_allclose([list(one.values()) for one in told], logits.softmax(-1).detach(), atol=1e-5)


def test_a_head_without_a_pooler_brings_its_own_layer() -> None:
    task = fitted("a", "b")
    model = new_model(task, TINY.changed({"encoder.pooler": None}))
    batch = collate([read(task, {"text": "a cat sat", "label": "a"}).samples[0]])
    first = model.encoder(batch).states.values[0]
    dense, output = (model.get_submodule(f"heads.classify.{name}") for name in ("transform.dense", "output"))
    logits = output(torch.tanh(dense(first)))
    torch.testing.assert_close(model.loss(batch).loss(), -logits.log_softmax(-1)[0])


def test_a_mistake_is_worse_the_surer_it_was() -> None:
    task = fitted("a", "b")
    answers = [task.answer(Example(()), [np.array(logits)]) for logits in ([2.0, 0.0], [0.1, 0.0], [0.0, 0.1])]
    wrong = [task.error_severity(answer, "b") for answer in answers]
    assert wrong[0] > wrong[1] > 0 == wrong[2]
    assert task.label_pairs(answers, ["b", "a", "b"]) == {"label": [("b", "a"), ("a", "a"), ("b", "b")]}
    assert task.labels_of("b") == ["b"]


# --- many labels


def multi(*cells: Any) -> MultiLabel:
    return MultiLabel().fitted(rows(("text", "label"), *(("a", cell) for cell in cells)))


def test_labels_in_a_list_or_in_one_cell() -> None:
    assert multi("food, very good", "", ["service", "food"]).labels == ("food", "service", "very good")
    assert multi(0, "1,2").labels == ("0", "1", "2"), "a single number is a label, also 0"
    assert multi("a").labels == ("a",), "one label, told or not, is something to learn"
    task = multi("a,b", "c")
    cells: tuple[Any, ...] = ("", [], "c", "b,a,b", ("a",))
    gold = [read(task, {"text": "x", "label": cell}).gold for cell in cells]
    assert gold == [[], [], ["c"], ["b", "a"], ["a"]]
    assert read(task, {"text": "x"}).gold is None
    target = read(task, {"text": "x", "label": "b,c"}).samples[0]["label"]
    assert isinstance(target, np.ndarray) and target.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("a, d", "the label 'd' is not in the training data"),
        (math.nan, "the label is empty"),
        (["a", None], "the label is empty"),
    ],
)
def test_labels_that_cannot_be_used(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(multi("a", "b"), {"text": "x", "label": cell})


def test_no_labels_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="no row has any label"):
        multi("", [], math.nan)


def test_thresholds_are_tuned_for_each_label_and_decide() -> None:
    task = MultiLabel(labels=("a", "b"), thresholds=(0.5, 0.5))
    outputs = [[np.array(logits)] for logits in ([-1.0, 2.0], [-2.0, 1.0], [-3.0, 0.5])]
    gold = [["a", "b"], ["a"], []]
    examples = [Example((), one) for one in gold]

    def told(task: MultiLabel) -> list[list[str]]:
        return [task.answer(example, one)["labels"] for example, one in zip(examples, outputs, strict=True)]

    assert told(task) == [["b"], ["b"], ["b"]]
    tuned = task.tuned(examples, outputs)
    assert told(tuned) == gold and MultiLabel.from_json(tuned.to_json()) == tuned
    answers = [tuned.answer(example, one) for example, one in zip(examples, outputs, strict=True)]
    assert tuned.score(answers, gold) == {
        "f1": 1.0, "micro_f1": 1.0, "macro_f1": 1.0, "exact_match": 1.0, "precision": 1.0, "recall": 1.0
    }  # fmt: skip
    assert tuned.score([], [])["f1"] == 0.0


def test_each_label_is_a_question_of_yes_and_no() -> None:
    task = MultiLabel(labels=("a", "b"), thresholds=(0.5, 0.5))
    answer = task.answer(Example(()), [np.array([3.0, -1.0])])
    assert answer["labels"] == ["a"]
    assert task.label_pairs([answer], [["b"]]) == {"a": [("no", "yes")], "b": [("yes", "no")]}
    p = answer["probabilities"]
    assert task.error_severity(answer, ["b"]) == pytest.approx(p["a"] + 1 - p["b"])
    assert task.error_severity(answer, ["a"]) == 0
    assert task.labels_of(["a", "b"]) == ["a", "b"]


# --- aspects


def test_every_aspect_has_labels_of_its_own() -> None:
    known = learned("aspects")
    assert isinstance(known.task, Aspects)
    assert known.task.aspects == {"food": ("-1", "0", "1"), "service": ("bad", "good", "none")}
    answers = known.answers()
    assert [{name: answer[name] for name in ("food", "service")} for answer in answers] == known.gold
    assert answers[0]["probabilities"]["food"]["1"] > 0.9
    scores = known.task.score(answers, known.gold)
    assert {"accuracy", "macro_f1", "food.accuracy", "service.macro_f1"} <= set(scores)
    wrong = {**known.gold[0], "food": "0"}
    assert known.task.error_severity(answers[0], wrong) == pytest.approx(1 - answers[0]["probabilities"]["food"]["0"])
    assert known.task.labels_of(known.gold[0]) == ["food: 1", "service: bad"]
    assert known.task.label_pairs(answers[:1], [wrong]) == {"food": [("0", "1")], "service": [("bad", "bad")]}


def test_aspects_that_cannot_be_used() -> None:
    task = Aspects(aspects={"food": (), "price": ()})
    with pytest.raises(InputError, match="every row has the label of price '1'"):
        task.fitted(rows(("text", "food", "price"), ("a", 0, 1), ("b", 1, 1)))
    ready = task.fitted(rows(("text", "food", "price"), ("a", 0, 1), ("b", 1, 0)))
    assert ready.summary() == "food: 0, 1; price: 0, 1"
    assert read(ready, {"text": "a"}).gold is None
    for cell in (None, "", math.nan):
        with pytest.raises(InputError, match="the price is empty; use a label such as none for what is not mentioned"):
            read(ready, {"text": "a", "food": 1, "price": cell})
    with pytest.raises(InputError, match="the label of price '2' is not in the training data"):
        read(ready, {"text": "a", "food": 1, "price": 2})


def test_the_loss_of_aspects_is_the_mean_over_all_their_labels() -> None:
    known = learned("aspects")
    batch = collate(known.samples)
    head = known.model.heads["aspects"]
    logits = head(known.model.encoder, known.model.encoder(batch).states)
    parts = [
        F.cross_entropy(part, targets)
        for part, targets in zip(logits.split([3, 3], -1), batch.tensor("label").view(4, 2).T, strict=True)
    ]
    torch.testing.assert_close(known.model.loss(batch).loss(), (parts[0] + parts[1]) / 2)
