"""Answers in passages: where they stand, which is best, and when there is none."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.tasks.learning import PASSAGE, Learned, learned, new_model, read, tokenizer

from bertie.batch import Sample, collate
from bertie.data.rows import open_rows
from bertie.errors import InputError
from bertie.tasks.answering import Answering, answers_in
from bertie.tasks.task import Example, Values

LONG = "the cat sat in the film of food. " * 12


def row(answer: str | None, passage: str = PASSAGE, question: str = "where is Ann?") -> dict[str, Any]:
    answers = [] if answer is None else [{"text": answer, "answer_start": passage.index(answer)}]
    return {"question": question, "passage": passage, "answers": answers}


def said(example: Example, best: tuple[str, float], none: float = 0.0) -> list[np.ndarray]:
    """Logits that give this text of the passage this score in all windows, and no answer the other."""
    windows, passage = example.context["windows"], example.context["passage"]
    text, score = best
    start = passage.index(text)
    found = windows.tokens_of(start, start + len(text))
    outputs = []
    for window in windows.rows:
        logits = np.full((len(window.fields["tokens"]), 2), -10.0, np.float32)
        logits[0] = none / 2
        if (place := window.place_of(*found)) is not None:
            logits[place[0], 0] = logits[place[1], 1] = score / 2
        outputs.append(logits)
    return outputs


# --- rows


def test_answers_as_squad_and_as_data_sets_have_them() -> None:
    assert answers_in([{"text": "Ann", "answer_start": 0}]) == [("Ann", 0)]
    assert answers_in({"text": ["Ann", "Bob"], "answer_start": [0, 24]}) == [("Ann", 0), ("Bob", 24)]
    assert answers_in({"text": [], "answer_start": []}) == answers_in([]) == []
    assert answers_in([{"text": "", "answer_start": -1}]) == [], "one way to say that there is none"


@pytest.mark.parametrize(
    "cell", [None, math.nan, "Paris", ["Paris"], [{"text": "Paris"}], {"text": ["a"], "answer_start": []}]
)
def test_what_are_no_answers(cell: Any) -> None:
    with pytest.raises(InputError, match="the answers are not a list of text and answer_start"):
        answers_in(cell)


def test_whether_some_questions_have_no_answer_is_told_by_the_rows_lazily() -> None:
    asked: list[int] = []

    def lazily(cells: list[Any]) -> Any:
        for number, cell in enumerate(cells):
            asked.append(number)
            yield {"question": "q", "passage": "p", "answers": cell}

    one: Any = {"text": ["p"], "answer_start": [0]}
    none: Any = {"text": [], "answer_start": []}
    assert Answering().fitted(lazily([one, "broken", one])).unanswerable is False
    asked.clear()
    task = Answering().fitted(lazily([one, none, one, one]))
    assert task.unanswerable and asked == [0, 1], "more rows would tell nothing new"
    assert task.summary() == "some questions have no answer"
    with pytest.raises(InputError, match="no row has an answer"):
        Answering().fitted(lazily([none, [], "broken"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"answers": [{"text": "Paris", "answer_start": 12}]},
            "the answer 'Paris' is not at character 12 of the passage",
        ),
        ({"answers": [{"text": "Paris", "answer_start": 900}]}, "is not at character 900"),
        ({"answers": [{"text": ".", "answer_start": -1}]}, "is not at character -1"),
        ({"question": " "}, "the question is empty"),
        ({"passage": math.nan}, "the passage is empty"),
        ({"question": "where is the cat? " * 20}, "the question leaves 0 of 64 tokens for the passage"),
        ({"passage": "Ann \u200b", "answers": [{"text": "\u200b", "answer_start": 4}]}, "the answer .* gives no token"),
    ],
)
def test_rows_that_cannot_be_used(changes: Values, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(Answering(), {**row("Paris"), **changes})


def targets(example: Example) -> list[tuple[int, int]]:
    return [(int(sample["begin"]), int(sample["end"])) for sample in example.samples]  # type: ignore[arg-type]


def test_windows_without_the_answer_learn_that_there_is_none() -> None:
    passage = LONG + "Ann lives in Paris. " + LONG
    task = Answering(stride=8)
    example = read(task, row("in Paris", passage))
    places = targets(example)
    held = [place for place in places if place != (0, 0)]
    assert len(places) > 3 and 1 <= len(held) < len(places)
    for sample, (begin, end) in zip(example.samples, places, strict=True):
        if begin:
            tokens = sample["tokens"]
            assert isinstance(tokens, np.ndarray)
            assert tokenizer().decode(tokens[begin : end + 1]) == "in paris"
    assert set(targets(read(task, row(None, passage)))) == {(0, 0)}
    assert "begin" not in read(task, {"question": "where?", "passage": passage}).samples[0]
    assert example.num_cut == 0


def test_of_several_gold_answers_the_first_is_learned_and_all_are_gold() -> None:
    answers = [{"text": text, "answer_start": PASSAGE.index(text)} for text in ("Paris", "in Paris")]
    example = read(Answering(), {**row(None), "answers": answers})
    (begin, end), *_ = targets(example)
    assert begin == end > 0 and example.gold == ["Paris", "in Paris"]


# --- answers


def test_the_best_of_all_windows_is_told_with_its_characters() -> None:
    passage = LONG + "“Ann” lives in  Paris. " + LONG
    task = Answering(stride=8)
    example = read(task, {"question": "where is Ann?", "passage": passage})
    answer = task.answer(example, said(example, ("in  Paris", 5.0)))
    assert answer["text"] == "in  Paris" and answer["score"] == 5.0 and answer["probability"] > 0.9
    assert passage[answer["start"] : answer["start"] + len(answer["text"])] == answer["text"]


def test_a_text_stands_once_among_the_best_however_often_the_passage_has_it() -> None:
    task = Answering(stride=8)
    example = read(task, {"question": "who?", "passage": LONG})
    rng = np.random.default_rng(0)
    outputs = [rng.normal(size=(len(window.fields["tokens"]), 2)) for window in example.context["windows"].rows]
    answer = task.answer(example, outputs)
    texts = [one["text"] for one in answer["nbest"]]
    scores = [one["score"] for one in answer["nbest"]]
    assert len(texts) == 5 == len(set(texts)) and scores == sorted(scores, reverse=True)
    assert answer["text"] == texts[0] and answer["score"] == scores[0]
    assert sum(one["probability"] for one in answer["nbest"]) < 1.00001
    for one in answer["nbest"]:
        assert LONG[one["start"] :].startswith(one["text"])


def test_no_answer_is_longer_than_the_longest() -> None:
    gold = LONG[:33].strip()
    for longest in (1, 3, 30):
        task = Answering(longest=longest)
        example = read(task, row(gold, LONG))
        begin, end = targets(example)[0]
        assert end - begin + 1 == 9, "it is learned whole"
        answer = task.answer(example, said(example, (gold, 50.0)))
        assert len(tokenizer().encode_pieces([answer["text"]]).ids) <= longest
        assert (answer["text"] == gold) == (longest == 30)


def test_whether_there_is_no_answer_is_decided_by_a_threshold_that_is_tuned() -> None:
    task = Answering(unanswerable=True, no_answer=0.0)
    examples = [read(task, row("Paris")), read(task, row("Rome")), read(task, row(None)), read(task, row(None))]
    outputs = [said(one, ("Paris", 4.0), none) for one, none in zip(examples[:1], [6.0], strict=True)]
    outputs += [said(examples[1], ("Rome", 4.0), 1.0)]
    outputs += [said(example, ("Bob", 4.0), none) for example, none in zip(examples[2:], [7.0, 9.0], strict=True)]

    def told(task: Answering) -> list[str]:
        return [task.answer(example, one)["text"] for example, one in zip(examples, outputs, strict=True)]

    assert told(task) == ["", "Rome", "", ""]
    tuned = task.tuned(examples, outputs)
    assert told(tuned) == ["Paris", "Rome", "", ""] and 2.0 <= tuned.no_answer < 3.0
    assert Answering.from_json(tuned.to_json()) == tuned
    always = task.replace(unanswerable=False)
    assert told(always) == ["Paris", "Rome", "Bob", "Bob"] and always.tuned(examples, outputs) is always
    answers = [tuned.answer(example, one) for example, one in zip(examples, outputs, strict=True)]
    gold = [example.gold for example in examples]
    assert tuned.score(answers, gold) == {
        "exact_match": 1.0, "f1": 1.0, "has_answer_exact_match": 1.0, "has_answer_f1": 1.0,
        "no_answer_exact_match": 1.0, "no_answer_f1": 1.0,
    }  # fmt: skip
    assert (answers[2]["start"], answers[2]["text"]) == (-1, "") and answers[2]["nbest"][0]["text"] == "Bob"
    kinds = ["answer", "answer", "no answer", "no answer"]
    assert tuned.label_pairs(answers, gold) == {"question": [(kind, kind) for kind in kinds]}
    assert [tuned.labels_of(one) for one in gold] == [[kind] for kind in kinds]
    assert always.label_pairs(answers, gold) == {} and always.labels_of(["Paris"]) == []


def test_the_least_sure_window_decides_about_no_answer() -> None:
    passage = LONG + "Ann lives in Paris. " + LONG
    task = Answering(unanswerable=True, stride=8)
    example = read(task, row("Paris", passage))
    outputs = said(example, ("Paris", 4.0), none=9.0)
    holding = next(number for number, place in enumerate(targets(example)) if place != (0, 0))
    assert task.answer(example, outputs)["text"] == ""
    outputs[holding][0] = 0.0  # the window with the answer knows that there is one
    answer = task.answer(example, outputs)
    assert answer["text"] == "Paris" and answer["no_answer_score"] == -4.0


def test_mistakes_are_measured_as_the_language_is() -> None:
    english, chinese = Answering(), Answering(language="chinese")
    answer = {"text": "the Paris"}
    assert english.error_severity(answer, ["Paris", "Rome"]) == 0
    assert english.error_severity({"text": "Rome"}, ["Paris"]) == 1
    told = {"text": "北京在"}
    assert chinese.error_severity(told, ["北京"]) == pytest.approx(1 - 0.8)
    assert chinese.score([told], [["北京"]]) == {"exact_match": 0.0, "f1": pytest.approx(0.8)}
    assert english.score([told], [["北京"]])["f1"] == 0


def test_chinese_answers_are_sliced_character_by_character() -> None:
    passage = "我们在北京，中文。" * 3
    task = Answering(language="chinese")
    example = read(task, row("北京", passage, "人在？"))
    answer = task.answer(example, said(example, ("北京", 3.0)))
    assert answer["text"] == "北京" and answer["start"] == 3


def test_the_loss_is_the_mean_of_two_cross_entropies() -> None:
    known: Learned = learned("answer")
    samples: list[Sample] = known.samples
    by_hand = []
    for sample in samples:
        states = known.model.encoder(collate([sample])).states.values
        logits = known.model.heads["answer"](states)  # [n, 2]
        asked = torch.tensor([int(sample["begin"]), int(sample["end"])])  # type: ignore[arg-type]
        by_hand.append(F.cross_entropy(logits.T, asked))
    torch.testing.assert_close(known.model.loss(collate(samples)).loss(), torch.stack(by_hand).mean())


def test_learned_answers_are_in_the_passage() -> None:
    known = learned("answer")
    assert [answer["text"] for answer in known.answers()] == ["Paris", "Bob", "", "Rome"]
    assert [answer["start"] for answer in known.answers()] == [PASSAGE.index("Paris"), PASSAGE.index("Bob"), -1, 36]


def test_white_space_around_an_answer_does_not_hide_it() -> None:
    example = read(Answering(), row(" Paris"))
    assert targets(example)[0] != (0, 0)
    same = read(Answering(), row("Paris"))
    assert targets(example) == targets(same)
    new_model(Answering())


# --- real data


def test_real_answers_that_are_not_at_their_place_are_refused_one_by_one(shared: Path) -> None:
    task, refused, wrong_rows = Answering(language="chinese"), 0, 0
    for values, _ in open_rows(shared / "data" / "cmrc2018" / "cmrc2018_dev.json"):
        given = {"question": values["question"], "passage": values["context"]}
        found = 0
        for answer in values["answers"]:
            if not values["context"].startswith(answer["text"], answer["answer_start"]):
                found += 1
                with pytest.raises(InputError, match="is not at character"):
                    read(task, {**given, "answers": [answer]}, length=384)
        if found:
            wrong_rows += 1
            with pytest.raises(InputError, match="is not at character"):
                read(task, {**given, "answers": values["answers"]}, length=384)
        refused += found
    assert (refused, wrong_rows) == (200, 176)
