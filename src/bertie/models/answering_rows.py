"""Examples of a task enter, what the model says of each sample leaves, in the order of the examples.

Samples of similar length run together under a budget of tokens; an output does not depend on its neighbours.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch

from bertie.batch import collate
from bertie.data.batching import batches_by_length
from bertie.models.model import Model
from bertie.tasks.task import Answer, Example, Task

BATCH_TOKENS = 4096
READ_AHEAD = 512  # examples that are sorted by length together

Outputs = list[np.ndarray]  # of one example: one a sample


def outputs_of(model: Model, task: Task, examples: Sequence[Example], max_tokens: int = BATCH_TOKENS) -> list[Outputs]:
    samples = [sample for example in examples for sample in example.samples]
    lengths = np.array([len(sample["tokens"]) for sample in samples])  # type: ignore[arg-type]
    found: dict[int, np.ndarray] = {}
    device, was_training = next(model.parameters()).device, model.training
    model.eval()
    try:
        with torch.inference_mode():
            for rows in batches_by_length(lengths, max_tokens):
                batch = collate([samples[row] for row in rows]).to(device)
                said = task.outputs(model.heads[task.kind], model.encoder, batch)
                found |= zip(rows.tolist(), said, strict=True)
    finally:
        model.train(was_training)
    numbers = iter(range(len(samples)))
    return [[found[next(numbers)] for _ in example.samples] for example in examples]


def answers_of(model: Model, task: Task, examples: Iterable[Example]) -> Iterator[tuple[Example, Answer]]:
    """Streaming: so many at a time."""
    remaining = iter(examples)
    while ahead := list(islice(remaining, READ_AHEAD)):
        for example, outputs in zip(ahead, outputs_of(model, task, ahead), strict=True):
            yield example, task.answer(example, outputs)
