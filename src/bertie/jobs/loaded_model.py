"""What `bertie.load` returns: a model with its tokenizer that encodes, fills gaps, predicts and evaluates."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bertie.models import pretrained
from bertie.models.pretrained import Pretrained
from bertie.reporting.events import OnEvent, warn

if TYPE_CHECKING:
    from bertie.jobs.finetuning.evaluate import Evaluation
    from bertie.jobs.finetuning.predict import Predictions


class LoadedModel(Pretrained):
    """A `Pretrained` model that also answers for its task, on rows in files or in memory."""

    def predict(self, rows: Any, *, on_event: OnEvent = warn, **options: Any) -> "Predictions":
        """One answer per row, in their order: a list of dicts.

        `rows` are texts, dicts by column, a pandas, polars or pyarrow table, a `datasets` object, or paths; a single
        string is one text. An answer has the number of its `row`, from 1; that of a row that cannot be used has its
        `error`. Options are those of `bertie predict`: `task`, `column`, `format`, `header`, `max_length`, `with_text`,
        `device`.

        >>> model = bertie.load("my-task")
        >>> model.predict(["a great film"])[0]["label"]
        'good'
        """
        from bertie.jobs.finetuning.predict import PredictJob

        given = [rows] if isinstance(rows, str) else rows
        return PredictJob.of(model=self.source or "", input=given, **options).collect(self, on_event)

    def evaluate(self, rows: Any, *, on_event: OnEvent = warn, **options: Any) -> "Evaluation":
        """The task's metrics on labelled rows: an `Evaluation` with `metrics` by name, which displays a report.

        `rows` are as for `predict`, with their labels; a single string is a path. Options are those of
        `bertie evaluate`.

        >>> model = bertie.load("my-task")
        >>> model.evaluate([{"text": "a great film", "label": "good"}]).metrics["accuracy"]
        1.0
        """
        from bertie.jobs.finetuning.evaluate import EvaluateJob

        return EvaluateJob.of(model=self.source or "", data=rows, **options).measure(self, on_event)


def load(source: str | Path, *, device: str | torch.device = "auto") -> LoadedModel:
    """Opens a model folder, a run folder, an adapter folder of `peft`, or a name on the Hugging Face hub. It computes
    on `device`: `cpu`, `cuda`, `mps`, or by default on a GPU if there is one.

    >>> model = bertie.load("my-model")
    >>> model.encode(["a text", "another"]).shape[0]
    2
    """
    found = pretrained.load(source, device=device)
    return LoadedModel(found.model, found.tokenizer, found.settings, found.report, found.card, found.source)
