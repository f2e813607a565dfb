"""bertie fine-tunes: a model folder, a head and rows enter with each request, seconds leave.

A turn reads its rows from the file and tokenises them, as the first epoch of `bertie finetune` does.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from itertools import islice

import numpy as np
import torch

import bertie
from benchmarks.contenders.protocol import Answer, answer_requests
from benchmarks.contenders.torch_engine import own_engine, set_up
from bertie.batch import Batch, Sample
from bertie.data.rows import open_rows
from bertie.inspection.costs import ForwardFlops, forward_flops
from bertie.models.model import Model
from bertie.models.variant import with_recipe
from bertie.tasks.answering import Answering
from bertie.tasks.classification import Classify
from bertie.tasks.examples import Examples
from bertie.tasks.labelled import Labelled
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.instances import split_rows
from bertie.train.learning.optimizer import AdamWSpec, Optimizer
from bertie.train.loop import take_step
from bertie.train.pretraining.options import MICRO_TOKENS

ADAMW = AdamWSpec(rate=5e-5)
COLUMNS = {
    "classify": {"text": "text", "label": "label"},
    "tag": {"words": "words", "tags": "tags"},
    "answer": {"question": "question", "passage": "context", "answers": "answers"},
    "cosine": {"text": "text", "other": "other", "score": "score"},
    "simcse": {"text": "text"},
}
MOST = 5.0  # the highest score of STS-B
PASSES = {"cosine": 1, "simcse": 2}  # how often the encoder reads each text of a row


def task_of(name: str, labels: Sequence[str]) -> Task:
    tasks: dict[str, Callable[[], Task]] = {
        "classify": lambda: Classify(labels=tuple(labels)),
        "tag": lambda: Tagging(tags=tuple(labels)),
        "answer": Answering,
        "cosine": lambda: Siamese(criterion="cosine", least=0.0, most=MOST),
        "simcse": lambda: Siamese(criterion="simcse"),
    }
    return tasks[name]()


@cache
def opened(name: str, labels: tuple[str, ...], folder: str, head: str | None) -> tuple[Model, Optimizer, Tokenizer]:
    pretrained, task = bertie.load(folder), task_of(name, labels)
    assert pretrained.tokenizer is not None
    model = with_recipe(pretrained.model, pretrained.recipe.replace(objectives=(task,)), seed=0)
    if head is not None:
        output = model.get_submodule(f"heads.{task.kind}.output")
        with np.load(head) as arrays, torch.no_grad():
            for part in ("weight", "bias"):
                output.get_parameter(part).copy_(torch.from_numpy(arrays[part]))
    return model, ADAMW.build(model), pretrained.tokenizer


def batches_of(request: Answer, tokenizer: Tokenizer) -> Iterator[list[Sample]]:
    """For ever. A long passage gives several windows; a batch counts them, so that all contenders take the same."""
    name = request["task"]
    task = task_of(name, request["labels"])
    data = Labelled(open_rows(request["rows"]), COLUMNS[name])
    examples = Examples(task, data, tokenizer, request["length"], "refuse")

    def samples() -> Iterator[Sample]:
        while True:
            for number in range(examples.num_samples):
                example = examples.example(number)
                assert example is not None
                yield from example.samples

    given = samples()
    while True:
        yield list(islice(given, request["batch"]))


def operations_of(costs: ForwardFlops, micro: Batch, task: str) -> float:
    """What a step over these rows needs. Texts that are compared are encoded apart."""
    if task not in PASSES:
        return costs.training_batch(micro)
    return PASSES[task] * costs.training(micro.tensor("texts").tolist(), 0)


def answer(request: Answer) -> Answer:
    model, optimizer, tokenizer = opened(
        request["task"], tuple(request["labels"]), request["model"], request.get("head")
    )
    batches = batches_of(request, tokenizer)
    if "check" in request:
        (batch,) = split_rows(next(batches), 1 << 30)
        with torch.no_grad():
            loss = model.eval().loss(batch).loss()
        return {"loss": float(loss), "tokens": len(batch.tensor("tokens"))}
    seconds, operations, costs = 0.0, 0.0, forward_flops(model)
    for number in range(request["steps"] + 1):
        begun = time.perf_counter()
        micros = split_rows(next(batches), MICRO_TOKENS)
        take_step(model, micros, optimizer, 1.0, step=number)
        if number:  # the first one warms up
            seconds += time.perf_counter() - begun
            operations += sum(operations_of(costs, micro, request["task"]) for micro in micros)
    return {"seconds": seconds, "examples": request["batch"] * request["steps"], "operations": operations}


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    set_up()
    return {name: version(name) for name in ("bertie", "torch")}, answer


if __name__ == "__main__":
    answer_requests(make, own_engine)
