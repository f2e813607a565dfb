"""The `transformers` Trainer trains: a model folder and instances enter with each request, seconds and tokens leave."""

import os
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertForPreTraining, Trainer, TrainerCallback, TrainingArguments

from benchmarks.contenders.instances import Instances
from benchmarks.contenders.protocol import Answer, answer_requests

IGNORED = -100


@cache
def rows_of(path: str) -> list[dict[str, torch.Tensor]]:
    rows = []
    for row in Instances.read(path).rows():
        labels = np.full(len(row["tokens"]), IGNORED)
        labels[row["masked"]] = row["targets"]
        arrays = {"input_ids": row["tokens"], "token_type_ids": row["segments"], "labels": labels}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        rows.append({**tensors, "next_sentence_label": torch.tensor(int(row["partner"]))})
    return rows


def collate(rows: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Padded to the longest row."""
    ends = {"input_ids": 0, "token_type_ids": 0, "labels": IGNORED}
    batch = {
        name: pad_sequence([row[name] for row in rows], batch_first=True, padding_value=end)
        for name, end in ends.items()
    }
    mask = pad_sequence([torch.ones_like(row["input_ids"]) for row in rows], batch_first=True)
    labels = torch.stack([row["next_sentence_label"] for row in rows])
    return {**batch, "attention_mask": mask, "next_sentence_label": labels}


@cache
def opened(folder: str) -> BertForPreTraining:
    return BertForPreTraining.from_pretrained(folder)


class Clock(TrainerCallback):
    """From the end of the first step, which warms up, to the end of the last."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.times.append(time.perf_counter())


class Taken(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """In the order of the file, as often as it takes."""

    def __init__(self, rows: list[dict[str, torch.Tensor]], size: int):
        self.rows, self.size = rows, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        return self.rows[number % len(self.rows)]


class InOrder(Trainer):
    """Not shuffled: all contenders see the same rows in the same steps."""

    def _get_train_sampler(self, train_dataset: Any = None) -> torch.utils.data.Sampler[int]:
        assert isinstance(self.train_dataset, Taken)
        return torch.utils.data.SequentialSampler(self.train_dataset)


def answer(request: Answer) -> Answer:
    model, rows = opened(request["model"]), rows_of(request["instances"])
    if "check" in request:
        model.eval()
        with torch.no_grad():
            return {"loss": float(model(**collate(rows[: request["check"]])).loss)}
    size, num_steps = request["settings"]["rows"], request["steps"] + 1
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            per_device_train_batch_size=size,
            max_steps=num_steps,
            learning_rate=5e-5,
            weight_decay=0.01,
            max_grad_norm=1.0,
            lr_scheduler_type="constant",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        given = Taken(rows, size * num_steps)
        InOrder(model=model, args=options, train_dataset=given, data_collator=collate, callbacks=[clock]).train()
    lengths = [len(given[number]["input_ids"]) for number in range(size, size * num_steps)]
    return {"seconds": clock.times[-1] - clock.times[0], "tokens": sum(lengths)}


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return {name: version(name) for name in ("transformers", "accelerate", "torch")}, answer


if __name__ == "__main__":
    answer_requests(make)
