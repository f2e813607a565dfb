"""bertie trains: a model folder and instances enter with each request, seconds and tokens of the steps leave."""

import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

import bertie
from benchmarks.contenders.instances import read_instances
from benchmarks.contenders.protocol import Answer, answer_requests
from benchmarks.contenders.torch_engine import own_engine, set_up
from bertie.batch import Batch, Places, Sample
from bertie.models.model import Model
from bertie.train.instances import split_rows
from bertie.train.learning.optimizer import AdamWSpec, Optimizer
from bertie.train.loop import take_step

ADAMW = AdamWSpec()


@cache
def rows_of(path: str) -> list[Sample]:
    return [{**row, "masked": Places("tokens", row["masked"])} for row in read_instances(path)]


@cache
def opened(folder: str) -> tuple[Model, Optimizer]:
    model = bertie.load(folder).model
    return model, ADAMW.build(model)


def steps_of(rows: list[Sample], settings: dict[str, Any]) -> Iterator[list[Batch]]:
    """For ever: whole batches, again from the first when all were taken."""
    size, at = settings["rows"], 0
    while True:
        yield split_rows([rows[(at + number) % len(rows)] for number in range(size)], settings["micro_tokens"])
        at = (at + size) % len(rows)


def without_luck(row: Sample) -> Sample:
    """Dice of 0 draw the vocabulary's first token, whatever the rounding of its probabilities."""
    return {**row, "dice": np.zeros_like(row["dice"])} if "dice" in row else row


def answer(request: Answer) -> Answer:
    model, optimizer = opened(request["model"])
    rows = rows_of(request["instances"])
    if "check" in request:
        model.eval()
        with torch.no_grad():
            (batch,) = split_rows([without_luck(row) for row in rows[: request["check"]]], 1 << 30)
            return {"loss": float(model.loss(batch).loss())}
    steps = steps_of(rows, request["settings"])
    num_tokens, seconds = 0, 0.0
    for number in range(request["steps"] + 1):
        begun = time.perf_counter()
        result = take_step(model, next(steps), optimizer, 0.1, step=number)
        if number:  # the first one warms up
            seconds += time.perf_counter() - begun
            num_tokens += result.num_tokens
    return {"seconds": seconds, "tokens": num_tokens}


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    set_up()
    return {name: version(name) for name in ("bertie", "torch")}, answer


if __name__ == "__main__":
    answer_requests(make, own_engine)
