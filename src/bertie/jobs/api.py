"""The functions of the Python API: each builds a job from keywords and runs it.

Keyword names are the names of the command line's flags; every option of a job is accepted, also those not listed here.
"""

from pathlib import Path
from typing import Any

from bertie.jobs.finetuning.evaluate import EvaluateJob, Evaluation
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.finetuning.predict import Predictions
from bertie.jobs.loaded_model import LoadedModel, load
from bertie.jobs.training.pretrain import PretrainJob
from bertie.jobs.training.training_run import TrainingRun
from bertie.reporting.events import OnEvent, warn
from bertie.tasks.task import Task


def pretrain(
    recipe: str | None = None,
    *,
    corpus: Any,
    size: str | None = None,
    steps: int | None = None,
    tokens: int | str | None = None,
    time: float | str | None = None,
    base: Any = None,
    seed: int | None = None,
    out: str | Path | None = None,
    on_event: OnEvent = warn,
    **options: Any,
) -> TrainingRun:
    """Trains a model on a corpus, or continues the run in `out`. Without `out` the run is temporary.

    >>> corpus = bertie.build_corpus(["One document.", "Another one."], tokenizer="my-vocab")
    >>> run = bertie.pretrain("bert", size="tiny", corpus=corpus, steps=2, held_out=0)
    >>> run.summary["steps"]
    2
    """
    given = {"recipe": recipe, "size": size, "corpus": corpus, "steps": steps, "tokens": tokens, "time": time}
    job = PretrainJob.of(**given, base=base, seed=seed, out=out, **options)
    found = job.run(on_event)
    assert found is not None
    return found


def finetune(
    task: str | Task,
    *,
    train: Any,
    dev: Any = None,
    base: Any = None,
    recipe: str | None = None,
    epochs: float | None = None,
    lr: float | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    on_event: OnEvent = warn,
    **options: Any,
) -> TrainingRun:
    """Trains a model for a task, or continues the run in `out`. Without `out` the run is temporary.

    `train` and `dev` are paths, lists of dicts, tables of pandas, polars or pyarrow, or `datasets` objects.

    >>> rows = [{"text": "a great film", "label": "good"}, {"text": "so dull", "label": "bad"}]
    >>> run = bertie.finetune("classify", base="my-model", train=rows, epochs=1)
    >>> sorted(run.predict(["what a film"])[0])
    ['label', 'probabilities', 'probability', 'row']
    """
    given = {"task": task, "train": train, "dev": dev, "base": base, "recipe": recipe, "epochs": epochs, "lr": lr}
    found = FinetuneJob.of(**given, seed=seed, out=out, **options).run(on_event)
    assert found is not None
    return found


def predict(model: Any, rows: Any, *, on_event: OnEvent = warn, **options: Any) -> Predictions:
    """One answer per row, in their order. `model` is a folder, or what `load` or `finetune` returned.

    >>> bertie.predict("my-task", ["a great film"])[0]["label"]
    'good'
    """
    loaded = getattr(model, "model", model)
    found = loaded if isinstance(loaded, LoadedModel) else load(model, device=options.get("device") or "auto")
    return found.predict(rows, on_event=on_event, **options)


def evaluate(model: Any, data: Any, *, on_event: OnEvent = warn, **options: Any) -> Evaluation:
    """Measures a task model on labelled rows. `model` is a folder, or what `load` or `finetune` returned.

    >>> rows = [{"text": "a great film", "label": "good"}, {"text": "so dull", "label": "bad"}]
    >>> 0 <= bertie.evaluate("my-task", rows).metrics["accuracy"] <= 1
    True
    """
    job = EvaluateJob.of(model=model, data=data, **options)
    loaded = getattr(model, "model", model)
    return job.measure(loaded, on_event) if isinstance(loaded, LoadedModel) else job.run(on_event)
