"""A task from a plugin: how many stars a text gives, as a number (regression)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from bertie.batch import Batch
from bertie.errors import InputError
from bertie.nn.initial import initialized
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import FIRST, Vocabulary
from bertie.tasks.task import Answer, Example, Task, Values, encoded, text_of
from bertie.text.tokenizers.tokenizer import Tokenizer


class Stars(Task):
    kind: Literal["stars"] = "stars"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": ("text", "review"), "stars": ("stars", "rating")}
    targets: ClassVar[Sequence[str]] = ("stars",)
    read_positions: ClassVar[tuple[str, ...] | None] = (FIRST,)
    main: ClassVar[str] = "closeness"
    most: float = 5.0

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        sample, num_cut = encoded(tokenizer, max_length, text_of(values, "text"))
        gold = float(values["stars"]) if "stars" in values else None
        if gold is not None and not 0 <= gold <= self.most:
            raise InputError(f"{gold:g} stars are not between 0 and {self.most:g}")
        given = {} if gold is None else {"stars": np.asarray(gold / self.most, np.float32)}
        return Example(({**sample, **given},), gold, {}, num_cut)

    def build(self, encoder: Any, vocabulary: Vocabulary) -> nn.Module:
        return initialized(nn.Linear(encoder.output_width, 1), encoder.initial_std)

    def predict(self, owned: nn.Module, encoder: Any, batch: Batch) -> torch.Tensor:
        return torch.sigmoid(owned(encoder.pool(self.last_states(encoder, batch))).squeeze(-1))

    def loss(self, owned: nn.Module, encoder: Any, batch: Batch) -> LossReport:
        losses = (self.predict(owned, encoder, batch) - batch.tensor("stars")).square()
        return LossReport({"stars": Figure.over(losses)})

    def outputs(self, owned: nn.Module, encoder: Any, batch: Batch) -> list[np.ndarray]:
        return list(self.predict(owned, encoder, batch).float().cpu().numpy()[:, None])

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return {"stars": round(float(outputs[0][0]) * self.most, 2)}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        errors = [self.error_severity(answer, true) for answer, true in zip(answers, gold, strict=True)]
        return {"closeness": -float(np.mean(errors))}

    def error_severity(self, answer: Answer, gold: float) -> float:
        return abs(answer["stars"] - gold)
