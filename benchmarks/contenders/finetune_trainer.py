"""The `transformers` Trainer fine-tunes: a model folder, a head and rows enter with each request, seconds leave.

Rows are tokenised before the clock runs, as its users do with `datasets.map`.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, TrainingArguments

from benchmarks.contenders.pretrain_trainer import Clock, InOrder, Taken
from benchmarks.contenders.protocol import Answer, answer_requests
from benchmarks.contenders.task_features import IGNORED, PREPARATIONS, Feature, set_head
from benchmarks.contenders.torch_engine import peer_engine, set_up

RATE = 5e-5


@cache
def tokenizer_of(folder: str) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@cache
def features_of(task: str, path: str, folder: str, length: int, labels: tuple[str, ...]) -> list[Feature]:
    with Path(path).open(encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return PREPARATIONS[task].features(rows, tokenizer_of(folder), length, labels)


@cache
def opened(task: str, folder: str, head: str) -> Any:
    preparation = PREPARATIONS[task]
    with np.load(head) as arrays:
        model = preparation.open_model(folder, len(arrays["bias"]))
        set_head(model, preparation.head, arrays["weight"], arrays["bias"])
    return model


def answer(request: Answer) -> Answer:
    task, folder = request["task"], request["model"]
    features = features_of(task, request["rows"], folder, request["length"], tuple(request["labels"]))
    model = opened(task, folder, request["head"])
    collator = PREPARATIONS[task].collator(tokenizer_of(folder))
    size = request["batch"]
    if "check" in request:
        checked = features[:size]
        return {"loss": checked_loss(model, collator, checked), "tokens": sum(len(one["input_ids"]) for one in checked)}
    num_steps = request["steps"] + 1  # the first one warms up
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        options = TrainingArguments(
            output_dir=scratch,
            use_cpu=True,
            per_device_train_batch_size=size,
            max_steps=num_steps,
            learning_rate=RATE,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        given: Any = Taken(features, size * num_steps)
        InOrder(model=model, args=options, train_dataset=given, data_collator=collator, callbacks=[clock]).train()
    return {"seconds": clock.times[-1] - clock.times[0], "examples": size * request["steps"]}


@torch.no_grad()
def checked_loss(model: Any, collator: Any, features: Sequence[Feature]) -> float:
    """Row by row: in a batch, padding too would be a place where an answer may begin or end."""
    model.eval()
    total, count = 0.0, 0
    for feature in features:
        batch = collator([dict(feature)])
        predicted = int((batch["labels"] != IGNORED).sum()) if "labels" in batch else 1
        total, count = total + predicted * float(model(**batch)["loss"]), count + predicted
    return total / count


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    set_up()
    return {name: version(name) for name in ("transformers", "accelerate", "torch")}, answer


if __name__ == "__main__":
    answer_requests(make, peer_engine)
