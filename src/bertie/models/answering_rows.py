"""Runs a task model over examples. Returns outputs in the order of the examples.

Samples of similar length run together under a budget of tokens; an output does not depend on its neighbours.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch

from bertie.batch import collate, num_sample_tokens
from bertie.data.batching import batches_by_length
from bertie.devices import device_of
from bertie.models.model import Model
from bertie.objectives.loss_report import LossReport
from bertie.tasks.task import Answer, Example, Task

BATCH_TOKENS = 4096
READ_AHEAD = 512  # examples that are sorted by length together

Outputs = list[np.ndarray]  # of one example: one for each sample


def outputs_of(model: Model, task: Task, examples: Sequence[Example], max_tokens: int = BATCH_TOKENS) -> list[Outputs]:
    return run_examples(model, task, examples, max_tokens, with_loss=False)[1]


def run_examples(
    model: Model, task: Task, examples: Sequence[Example], max_tokens: int = BATCH_TOKENS, *, with_loss: bool = True
) -> tuple[LossReport, list[Outputs]]:
    """Loss, where examples have gold, and outputs from one pass."""
    samples = [sample for example in examples for sample in example.samples]
    lengths = np.array([num_sample_tokens(sample) for sample in samples])
    head, report, found = model.heads[task.name], LossReport(), dict[int, np.ndarray]()
    device, was_training = device_of(model), model.training
    model.eval()
    try:
        with torch.inference_mode():
            # Batches are not kept: stored features would fill the memory.
            for rows in batches_by_length(lengths, max_tokens):
                batch = collate([samples[row] for row in rows]).to(device)
                if with_loss:
                    loss, outputs = task.evaluate_batch(head, model.encoder, batch)
                    report = report + loss
                else:
                    outputs = task.outputs(head, model.encoder, batch)
                found |= zip(rows.tolist(), outputs, strict=True)
    finally:
        model.train(was_training)
    numbers = iter(range(len(samples)))
    return report.fetched(), [[found[next(numbers)] for _ in example.samples] for example in examples]


def answers_of(model: Model, task: Task, examples: Iterable[Example]) -> Iterator[tuple[Example, Answer]]:
    """Reads so many examples at a time."""
    remaining = iter(examples)
    while ahead := list(islice(remaining, READ_AHEAD)):
        _, found = run_examples(model, task, ahead, with_loss=False)
        for example, outputs in zip(ahead, found, strict=True):
            yield example, task.answer(example, outputs)
