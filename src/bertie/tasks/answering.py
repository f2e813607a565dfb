"""Answers a question with a span of a passage, or finds that there is no answer.

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
from bertie.nn.heads import Classifier, SequenceHeadSpec, TransformSpec
from bertie.nn.initial import initialized
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Vocabulary
from bertie.tasks.hf_head import ANSWERS, HFHead
from bertie.tasks.label_sets import NOTHING
from bertie.tasks.metrics.answers import SCORES, Language, answer_scores, best_threshold
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.majority import Majority
from bertie.tasks.passage_windows import PassageWindow, PassageWindows, TokenSpan, best_spans, windows_of
from bertie.tasks.probabilities import rounded, softmax
from bertie.tasks.task import Answer, Example, LabelPairs, Task, TaskOptions, Values, text_of
from bertie.text.tokenizers.tokenizer import Tokenizer

NONE = (0, 0)  # where there is no answer, it is at the first token
NBEST = 5  # alternatives in an answer


class AnsweringOptions(TaskOptions):
    chinese: bool = Field(default=False, description="Compare answers character by character when scoring.")
    stride: int = Field(default=128, ge=1, le=10**6, description="Tokens that neighbouring windows of a passage share.")
    longest_answer: int = Field(default=30, ge=1, le=10**6, description="The longest answer, in tokens.")

    def build(self) -> Task:
        language: Language = "chinese" if self.chinese else "english"
        return Answering(stride=self.stride, longest=self.longest_answer, language=language)


class Answering(Task):
    """There is no answer where the first token scores higher than every span, by more than `no_answer`."""

    kind: Literal["answer"] = "answer"
    about: ClassVar[str] = "Find the answer to a question in a passage."
    Options: ClassVar[type[TaskOptions]] = AnsweringOptions
    max_length: ClassVar[int] = 384  # a passage is longer than a sentence
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "question": ("question", "query"),
        "passage": ("context", "passage", "paragraph", "text"),
        "answers": ("answers", "answer"),
    }
    targets: ClassVar[Sequence[str]] = ("answers",)
    main: ClassVar[str] = "f1"
    stride: int = Field(default=128, ge=1)  # tokens that neighbouring windows share
    longest: int = Field(default=30, ge=1)  # answer, in tokens
    unanswerable: bool = False  # whether the training data had questions without an answer
    language: Language = "english"  # how answers are compared
    transform: TransformSpec | None = None  # before the output
    no_answer: float = 0.0  # by how much the first token may score higher than the best span

    def fitted(self, rows: Iterable[Values]) -> Self:
        found = set[bool]()
        for values in rows:
            with suppress(InputError):
                found.add(bool(answers_in(values.get("answers"))))
            if len(found) == 2:
                break
        if True not in found:
            raise InputError("no row has an answer", hint="is it the right column?")
        return self.replace(unanswerable=False in found)

    def summary(self) -> str:
        return "some questions have no answer" if self.unanswerable else "every question has an answer"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        transform = None if self.transform is None else self.transform.build(encoder.output_width)
        return initialized(
            Classifier(encoder.output_width, 2, transform), encoder.initial_std
        )  # logits of begin and end

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        question, passage = text_of(values, "question"), text_of(values, "passage")
        gold = None if "answers" not in values else answers_in(values["answers"])
        for text, start in gold or ():
            if start < 0 or not passage.startswith(text, start):
                raise InputError(f"the answer {text!r} is not at character {start} of the passage")
        windows = windows_of(tokenizer, question, passage, max_length, self.stride)
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

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
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
        spans = best_spans(outputs, example.context["windows"], self.longest)
        found = _answers_at(spans, example.context["windows"], example.context["passage"])
        none = min(float(logits[0].sum()) for logits in outputs)
        others = [none] if self.unanswerable or not found else []
        shares = softmax(np.array([*(one["score"] for one in found), *others]))
        nbest = [{**one, "probability": rounded(share)} for one, share in zip(found, shares, strict=False)]
        difference = none - spans[0].score
        best = {"text": "", "start": -1, "probability": rounded(shares[-1])}
        if found and not (self.unanswerable and difference > self.no_answer):
            best = {name: nbest[0][name] for name in best}
        return {**best, "score": spans[0].score, "no_answer_score": difference, "nbest": nbest[:NBEST]}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        return answer_scores(gold, [answer["text"] for answer in answers], self.language)

    def error_severity(self, answer: Answer, gold: Sequence[str]) -> float:
        return 1 - SCORES[self.language][1](gold, answer["text"])

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        """Whether there is an answer, where some questions have none."""
        if not self.unanswerable:
            return {}
        pairs = zip(answers, gold, strict=True)
        return {"question": [(_has_answer(one), _has_answer(answer["text"])) for answer, one in pairs]}

    def labels_of(self, gold: Sequence[str]) -> list[str]:
        return [_has_answer(gold)] if self.unanswerable else []

    def describe(self, answer: Answer, gold: Sequence[str]) -> tuple[str, str]:
        return " | ".join(dict.fromkeys(gold)) or NOTHING, answer["text"] or NOTHING

    def excerpt_start(self, role: str, example: Example, answer: Answer) -> int:
        """Where the answer stands in the passage."""
        if role != "passage":
            return 0
        if answer["start"] >= 0:
            return int(answer["start"])
        return max(0, str(example.values[role]).find(example.gold[0])) if example.gold else 0

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        return self.constant_score("no answer", {"text": ""}, measured) if self.unanswerable else None

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        pairs = list(zip(gold, [answer["text"] for answer in answers], strict=True))
        exact, shared = (np.array([score(*pair) for pair in pairs]) for score in SCORES[self.language])
        has_answer = np.array([bool(golds) for golds in gold], np.bool_)
        parts = {"": np.ones_like(has_answer), "has_answer_": has_answer, "no_answer_": ~has_answer}

        def score(numbers: np.ndarray) -> dict[str, float]:
            chosen = {prefix: numbers[part[numbers]] for prefix, part in parts.items()}
            return {
                prefix + name: float(column[drawn].mean()) if len(drawn) else 0.0
                for prefix, drawn in chosen.items()
                for name, column in (("exact_match", exact), ("f1", shared))
            }

        return Resampling(len(answers), score)

    def hf_head(self) -> HFHead | None:
        return HFHead(ANSWERS, ("start", "end"))

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> Task | None:
        is_own = found.role == ANSWERS and len(found.labels) == 2
        return Answering(transform=head.transform) if is_own else None

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
    """(text, first character) from a list of objects, as in SQuAD, or an object of lists, as in `datasets`. An empty
    text is no answer."""
    try:
        if isinstance(cell, Mapping):
            pairs = list(zip(cell["text"], cell["answer_start"], strict=True))
        else:
            pairs = [(answer["text"], answer["answer_start"]) for answer in cell]
        return [(str(text), int(start)) for text, start in pairs if text]
    except (KeyError, TypeError, ValueError):
        raise InputError("the answers are not a list of text and answer_start") from None


def _tokens_of(answer: tuple[str, int], windows: PassageWindows) -> tuple[int, int]:
    text, start = answer
    found = windows.tokens_of(start, start + len(text))
    if found is None:
        raise InputError(f"the answer {text!r} gives no token")
    return found


def _with_target(window: PassageWindow, asked: tuple[int, int] | None) -> Sample:
    """A window that does not hold the answer has none."""
    begin, end = (window.place_of(*asked) if asked is not None else None) or NONE
    return {**window.fields, "begin": np.asarray(begin), "end": np.asarray(end)}


def _answers_at(spans: Sequence[TokenSpan], windows: PassageWindows, passage: str) -> list[Answer]:
    """Each text once, where it scores best, without surrounding white space."""
    found: dict[str, Answer] = {}
    for span in spans:
        start, stop = windows.characters_of(span.begin, span.end)
        text = passage[start:stop]
        start += len(text) - len(text.lstrip())
        if text := text.strip():
            found.setdefault(text, {"text": text, "start": start, "score": span.score})
    return list(found.values())


def _has_answer(answer: str | Sequence[str]) -> str:
    return "answer" if answer else "no answer"
