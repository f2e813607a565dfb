"""Answers in a passage: a question and a passage enter, a span of the passage, or that there is none, leaves.

BERT, section 4.2 and 4.3. A long passage is read in windows that overlap; the best span of all windows is the answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Sample
from bertie.errors import InputError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Classifier
from bertie.nn.initial import initialised
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.metrics.answers import SCORES, Language, answer_scores, best_threshold
from bertie.tasks.passage_windows import best_spans, places_of, windows_of
from bertie.tasks.task import Answer, Example, Task, Values, text_of
from bertie.text.tokenizer import Tokenizer


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
    no_answer: float = 0.0  # how much better than the best span the first token may be

    def fitted(self, rows: Any) -> Self:
        return self.replace(unanswerable=any(not values["answers"] for values in rows))

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        return initialised(Classifier(encoder.width, 2), encoder.initial_std)  # logits of start and end

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        question, passage = text_of(values, "question"), text_of(values, "passage")
        gold = None if "answers" not in values else answers_in(values["answers"])
        for text, start in gold or ():
            if passage[start : start + len(text)] != text:
                raise InputError(f"the answer {text!r} is not at its place, {start}, in the passage")
        windows = windows_of(tokenizer, question, passage, length, self.stride)
        samples: list[Sample] = []
        for fields, offsets in windows:
            if gold is not None:  # what a window does not hold is, to it, no answer: the first token
                found = places_of(offsets, gold[0][1], len(gold[0][0])) if gold else None
                begin, end = found or (0, 0)
                fields = {**fields, "begin": np.asarray(begin), "end": np.asarray(end)}
            samples.append(fields)
        told = {"passage": passage, "offsets": [offsets for _, offsets in windows], "id": values.get("id")}
        return Example(tuple(samples), None if gold is None else [text for text, _ in gold], told)

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
        states = encoder(batch).states
        logits = owned(states.values).float()
        return [rows.numpy() for rows in states.with_values(logits).rows()]

    def _logits(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
        """[B, L] each, -inf behind the end of a row."""
        states = encoder(batch).states
        begins, ends = states.with_values(owned(states.values)).pad(-torch.inf).unbind(-1)
        return begins, ends

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        spans = best_spans(outputs, example.told["offsets"], self.longest)
        passage = example.told["passage"]
        none = min(float(logits[0].sum()) for logits in outputs)
        nbest = [{"text": passage[begin:end], "start": begin, "score": score} for score, begin, end in spans]
        best = nbest[0] if nbest else {"text": "", "start": 0, "score": -np.inf}
        difference = none - best["score"]
        abstains = self.unanswerable and difference > self.no_answer
        told = {"text": "", "start": -1} if abstains else {"text": best["text"], "start": best["start"]}
        return {**told, "score": float(best["score"]), "no_answer_score": float(difference), "nbest": nbest[:5]}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return answer_scores(list(gold), [answer["text"] for answer in answers], self.language)

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
    """(text, first character) from a list of objects, as SQuAD has it, or an object of lists, as data sets have it."""
    try:
        if isinstance(cell, Mapping):
            cell = [{"text": text, "answer_start": start} for text, start in zip(cell["text"], cell["answer_start"], strict=True)]
        return [(str(answer["text"]), int(answer["answer_start"])) for answer in cell]
    except (KeyError, TypeError, ValueError):
        raise InputError("the answers are no list of text and answer_start") from None
