"""Answers in a passage: a question and a passage enter, a span of the passage, or that there is none, leaves.

BERT, section 4.2 and 4.3. A long passage is read in windows that overlap; the best span of all windows is the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Sample
from bertie.errors import InputError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Classifier, TransformSpec
from bertie.nn.initial import initialised
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.metrics.answers import SCORES, Language, answer_scores, best_threshold
from bertie.tasks.passage_windows import PassageWindow, PassageWindows, TokenSpan, best_spans, windows_of
from bertie.tasks.probabilities import rounded, softmax
from bertie.tasks.task import Answer, Example, Task, Values, text_of
from bertie.text.tokenizer import Tokenizer

NONE = (0, 0)  # where there is no answer, it is at the first token
NBEST = 5  # answers that are told


class Answering(Task):
    """Where the first token wins over every span, by more than `no_answer` allows, there is no answer."""

    kind: Literal["answer"] = "answer"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "question": ("question", "query"),
        "passage": ("context", "passage", "paragraph", "text"),
        "answers": ("answers", "answer"),
    }
    targets: ClassVar[Sequence[str]] = ("answers",)
    main: ClassVar[str] = "f1"
    stride: int = Field(default=128, ge=1)  # tokens that neighbouring windows share
    longest: int = Field(default=30, ge=1)  # tokens of an answer
    unanswerable: bool = False  # whether the training data had questions without an answer
    language: Language = "english"  # how answers are compared
    transform: TransformSpec | None = None  # before the output
    no_answer: float = 0.0  # how much better than the best span the first token may be

    def fitted(self, rows: Iterable[Values]) -> Self:
        found = set[bool]()
        for values in rows:
            with suppress(InputError):
                found.add(bool(answers_in(values.get("answers"))))
            if len(found) == 2:
                break
        if True not in found:
            raise InputError("no row has an answer", hint="is the right column named?")
        return self.replace(unanswerable=False in found)

    def summary(self) -> str:
        return "some questions have no answer" if self.unanswerable else "every question has an answer"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        transform = None if self.transform is None else self.transform.build(encoder.output_width)
        return initialised(
            Classifier(encoder.output_width, 2, transform), encoder.initial_std
        )  # logits of begin and end

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        question, passage = text_of(values, "question"), text_of(values, "passage")
        gold = None if "answers" not in values else answers_in(values["answers"])
        for text, start in gold or ():
            if start < 0 or not passage.startswith(text, start):
                raise InputError(f"the answer {text!r} is not at its place, {start}, in the passage")
        windows = windows_of(tokenizer, question, passage, length, self.stride)
        samples: tuple[Sample, ...] = tuple(window.fields for window in windows.rows)
        if gold is not None:
            asked = _tokens_of(gold[0], windows) if gold else None
            samples = tuple(_with_target(window, asked) for window in windows.rows)
        return Example(samples, gold and [text for text, _ in gold], {"passage": passage, "windows": windows})

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        begins, ends = self._logits(owned, encoder, batch)
        losses = [
            F.cross_entropy(logits, batch.tensor(name), reduction="none")
            for logits, name in ((begins, "begin"), (ends, "end"))
        ]
        return LossReport({"answer": Figure.over((losses[0] + losses[1]) / 2)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return [F.log_softmax(logits, -1) for logits in self._logits(owned, encoder, batch)]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"answer": len(batch.tensor("begin"))}

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """[n, 2] of each window."""
        states = self.last_states(encoder, batch)
        logits = owned(states.values).float().cpu()
        return [rows.numpy() for rows in logits.split(states.sizes)]

    def _logits(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
        """[B, L] each, -inf behind the end of a row."""
        states = encoder(batch).states
        begins, ends = states.with_values(owned(states.values)).pad(-torch.inf).unbind(-1)
        return begins, ends

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        spans = best_spans(outputs, example.told["windows"], self.longest)
        found = _answers_at(spans, example.told["windows"], example.told["passage"])
        none = min(float(logits[0].sum()) for logits in outputs)
        others = [none] if self.unanswerable or not found else []
        shares = softmax(np.array([*(one["score"] for one in found), *others]))
        nbest = [{**one, "probability": rounded(share)} for one, share in zip(found, shares, strict=False)]
        difference = none - spans[0].score
        told = {"text": "", "start": -1, "probability": rounded(shares[-1])}
        if found and not (self.unanswerable and difference > self.no_answer):
            told = {name: nbest[0][name] for name in told}
        return {**told, "score": spans[0].score, "no_answer_score": difference, "nbest": nbest[:NBEST]}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return answer_scores(gold, [answer["text"] for answer in answers], self.language)

    def wrongness(self, answer: Answer, gold: Sequence[str]) -> float:
        return 1 - SCORES[self.language][1](gold, answer["text"])

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        """Whether there is an answer, where that is a question at all."""
        if not self.unanswerable:
            return {}
        told = [(_has_answer(one), _has_answer(answer["text"])) for answer, one in zip(answers, gold, strict=True)]
        return {"question": told}

    def labels_of(self, gold: Sequence[str]) -> list[str]:
        return [_has_answer(gold)] if self.unanswerable else []

    def tuned(self, examples: Sequence[Example], outputs: Sequence[Sequence[np.ndarray]]) -> Self:
        if not self.unanswerable:
            return self
        always = self.replace(unanswerable=False)
        answers = [always.answer(example, one) for example, one in zip(examples, outputs, strict=True)]
        score = SCORES[self.language][1]
        threshold = best_threshold(
            [answer["no_answer_score"] for answer in answers],
            [score(example.gold, answer["text"]) for example, answer in zip(examples, answers, strict=True)],
            [bool(example.gold) for example in examples],
        )
        return self.replace(no_answer=threshold.value)


def answers_in(cell: Any) -> list[tuple[str, int]]:
    """(text, first character) from a list of objects, as SQuAD has it, or an object of lists, as data sets have it. An
    empty text is no answer."""
    try:
        if isinstance(cell, Mapping):
            pairs = list(zip(cell["text"], cell["answer_start"], strict=True))
        else:
            pairs = [(answer["text"], answer["answer_start"]) for answer in cell]
        return [(str(text), int(start)) for text, start in pairs if text]
    except (KeyError, TypeError, ValueError):
        raise InputError("the answers are no list of text and answer_start") from None


def _tokens_of(answer: tuple[str, int], windows: PassageWindows) -> tuple[int, int]:
    text, start = answer
    found = windows.tokens_of(start, start + len(text))
    if found is None:
        raise InputError(f"the answer {text!r} gives no token")
    return found


def _with_target(window: PassageWindow, asked: tuple[int, int] | None) -> Sample:
    """What a window does not hold is, to it, no answer."""
    begin, end = (window.place_of(*asked) if asked is not None else None) or NONE
    return {**window.fields, "begin": np.asarray(begin), "end": np.asarray(end)}


def _answers_at(spans: Sequence[TokenSpan], windows: PassageWindows, passage: str) -> list[Answer]:
    """Each text once, where it scores best, without white space around it."""
    found: dict[str, Answer] = {}
    for span in spans:
        start, stop = windows.characters_of(span.begin, span.end)
        text = passage[start:stop]
        start += len(text) - len(text.lstrip())
        if text := text.strip():
            found.setdefault(text, {"text": text, "start": start, "score": span.score})
    return list(found.values())


def _has_answer(told: str | Sequence[str]) -> str:
    return "answer" if told else "no answer"
