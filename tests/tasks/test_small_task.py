"""A task with nothing but the methods that have no default: it is trained, measured, reported and asked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch.nn.functional as F
from tests.tasks.learning import TINY, tokenizer
from torch import nn

import bertie
from bertie.batch import Batch
from bertie.models.answering_rows import answers_of
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import OBJECTIVES
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.pooling import mean_token
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Vocabulary
from bertie.tasks import TASKS, new_task
from bertie.tasks.labelled import Labelled, open_labelled
from bertie.tasks.task import Answer, Example, Task, Values, encoded, text_of
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit
from bertie.train.finetuning.task_evaluation import TaskEvaluation
from bertie.train.reports.task_page import task_page
from bertie.train.reports.task_report import report_task, terminal_lines


class Stars(Task):
    """Predicts how many stars a review gives."""

    kind: Literal["stars"] = "stars"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": ("text", "review"), "stars": ("stars",)}
    targets: ClassVar[Sequence[str]] = ("stars",)
    main: ClassVar[str] = "closeness"

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        fields, num_cut = encoded(tokenizer, max_length, text_of(values, "text"))
        gold = values.get("stars")
        if gold is not None:
            fields["stars"] = np.asarray(gold, np.float32)
        return Example((fields,), gold, num_cut=num_cut)

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> nn.Module:
        return nn.Linear(encoder.output_width, 1)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        predicted = owned(mean_token(encoder(batch).states)).squeeze(-1)
        return LossReport({"stars": Figure.over(F.mse_loss(predicted, batch.tensor("stars"), reduction="none"))})

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        return list(owned(mean_token(encoder(batch).states)).cpu().numpy())

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        return {"stars": float(outputs[0][0])}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        errors = [abs(answer["stars"] - one) for answer, one in zip(answers, gold, strict=True)]
        return {"closeness": 1 - float(np.mean(errors)) / 5}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(TASKS, "stars", Stars)
    monkeypatch.setitem(OBJECTIVES, "stars", Stars)
    yield


@pytest.fixture
def rows(tmp_path: Path) -> Labelled:
    path = tmp_path / "rows.jsonl"
    given = [{"review": f"{word} film", "stars": stars} for word, stars in (("good", 5), ("dull", 1))] * 8
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return open_labelled(new_task("stars"), [path])


def test_columns_are_found_by_the_names_of_roles(rows: Labelled) -> None:
    assert rows.columns == {"text": "review", "stars": "stars"}


def test_a_small_task_is_trained_measured_reported_and_asked(rows: Labelled, tmp_path: Path) -> None:
    task = fit(new_task("stars"), rows, "refuse")
    base = Pretrained(Model.new(TINY.changed({"objectives": ()})), tokenizer())
    prepared = PreparedTask.of(task, rows, rows, tokenizer(), task.max_length, "refuse")
    fields = {"optimizer": {"kind": "adamw", "rate": 1e-2}, "length": task.max_length}
    found = finetune(tmp_path / "run", base, [prepared], FinetuneOptions.of_epochs([16], 8, 8, fields))
    assert found.summary["evaluation"]["closeness"] > 0.8

    trained = bertie.load(tmp_path / "run")
    assert trained.task() == task
    evaluation = found.evaluations["stars"]
    answers = TaskEvaluation(trained.task(), evaluation.examples).answers(trained.model)
    assert answers == evaluation.last_answers, "the finished model need not answer again"
    report = report_task(task, evaluation.examples, answers, name="rows", card=prepared.card.as_dict())
    assert "closeness" in "\n".join(terminal_lines(report)) and "closeness" in task_page(report)
    assert report.metrics.intervals["closeness"].contains(report.metrics.values["closeness"])

    read = [task.read(values, tokenizer(), 16) for values in task.rows_from_texts(["good film"])]
    ((_, answer),) = answers_of(trained.model, task, read)
    assert answer["stars"] > 3 and task.arrange(["good film"], [answer]) == [answer]
