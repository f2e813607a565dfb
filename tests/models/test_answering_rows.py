"""Answers to many rows: in their order, so many at a time, with the model left as it was."""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.tasks.learning import learned, read

from bertie.models import answering_rows
from bertie.models.answering_rows import answers_of, outputs_of
from bertie.tasks.task import Example


def test_outputs_are_in_the_order_of_the_examples() -> None:
    """Rows of very different length are run in another order."""
    known = learned("classify")
    texts = ["a good film", "a dull story " * 15, "bad", "the cat sat in the film " * 8, "fine food"]
    examples = [read(known.task, {"text": text}) for text in texts]
    together = outputs_of(known.model, known.task, examples, max_tokens=70)
    for example, output in zip(examples, together, strict=True):
        np.testing.assert_allclose(output, outputs_of(known.model, known.task, [example])[0], atol=1e-5)


def test_an_example_of_several_samples_gets_all_their_outputs() -> None:
    known = learned("answer")
    passages = ["Ann lives in Paris. " * 40, "Bob went to Rome. ", "the cat sat. " * 30]
    examples = [read(known.task, {"question": "who?", "passage": passage}) for passage in passages]
    outputs = outputs_of(known.model, known.task, examples)
    assert [len(one) for one in outputs] == [len(example.samples) for example in examples] and len(outputs[0]) > 2
    for example, one in zip(examples, outputs, strict=True):
        assert [len(logits) for logits in one] == [len(sample["tokens"]) for sample in example.samples]  # type: ignore[arg-type]
    assert outputs_of(known.model, known.task, []) == []


def test_rows_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering_rows, "READ_AHEAD", 2)
    known = learned("classify")
    asked: list[int] = []

    def lazily() -> Iterator[Example]:
        for number, example in enumerate(known.examples):
            asked.append(number)
            yield example

    answers = answers_of(known.model, known.task, lazily())
    assert next(answers)[0] is known.examples[0] and asked == [0, 1]
    assert [answer for _, answer in answers] == known.answers()[1:] and asked == [0, 1, 2, 3, 4]
    listed = [answer for _, answer in answers_of(known.model, known.task, known.examples)]
    assert listed == known.answers(), "a list is no iterator, and is read once nonetheless"


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    known = learned("classify")
    known.model.train(training)
    try:
        assert known.answers() == known.answers(), "without dropout"
        assert known.model.training is training

        def broken(*_: object) -> None:
            raise RuntimeError

        monkeypatch.setattr(type(known.task), "outputs", broken)
        with pytest.raises(RuntimeError):
            known.answers()
        assert known.model.training is training
    finally:
        known.model.eval()
