"""The `transformers` Trainer trains: a model folder and instances enter with each request, seconds and tokens leave."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AlbertForPreTraining,
    BertForPreTraining,
    ModernBertForMaskedLM,
    RobertaForMaskedLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from benchmarks.contenders.instances import read_instances
from benchmarks.contenders.joint_electra import IGNORED, JointElectra
from benchmarks.contenders.protocol import Answer, answer_requests
from benchmarks.contenders.torch_engine import peer_engine, set_up

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Family:
    """How a family is opened for training, and what it calls the relation of two stretches."""

    open: Callable[..., Any]
    relation: str = ""


FAMILIES = {
    "bert": Family(BertForPreTraining.from_pretrained, "next_sentence_label"),
    "roberta": Family(RobertaForMaskedLM.from_pretrained),
    "albert": Family(AlbertForPreTraining.from_pretrained, "sentence_order_label"),
    "electra": Family(JointElectra.from_pretrained),
    "modernbert": Family(ModernBertForMaskedLM.from_pretrained),
}


def family_of(folder: str) -> Family:
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    return FAMILIES[config["model_type"]]


@cache
def rows_of(path: str, relation: str) -> list[Tensors]:
    rows = []
    for row in read_instances(path):
        labels = np.full(len(row["tokens"]), IGNORED)
        labels[row["masked"]] = row["masked_targets"]
        arrays = {"input_ids": row.get("gaps", row["tokens"]), "labels": labels}
        arrays |= {"token_type_ids": row["segments"]} if "segments" in row else {}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        rows.append(tensors | ({relation: torch.tensor(int(row["partner"]))} if relation else {}))
    return rows


def collate(rows: list[Tensors], pad: int = 0) -> Tensors:
    """Padded to the longest row."""
    ends = {"input_ids": pad, "labels": IGNORED}
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0] if not rows[0][name].ndim}
    for name in rows[0].keys() - batch.keys():
        batch[name] = pad_sequence([row[name] for row in rows], batch_first=True, padding_value=ends.get(name, 0))
    mask = pad_sequence([torch.ones_like(row["input_ids"]) for row in rows], batch_first=True)
    return {**batch, "attention_mask": mask}


@cache
def opened(folder: str, options: tuple[tuple[str, Any], ...]) -> Any:
    return family_of(folder).open(folder, **dict(options))


class Clock(TrainerCallback):
    """From the end of the first step, which warms up, to the end of the last."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.times.append(time.perf_counter())


class Taken(torch.utils.data.Dataset[Tensors]):
    """In the order of the file, as often as it takes."""

    def __init__(self, rows: list[Tensors], size: int):
        self.rows, self.size = rows, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> Tensors:
        return self.rows[number % len(self.rows)]


class InOrder(Trainer):
    """Not shuffled: all contenders see the same rows in the same steps."""

    def _get_train_sampler(self, train_dataset: Any = None) -> torch.utils.data.Sampler[int]:
        assert isinstance(self.train_dataset, Taken)
        return torch.utils.data.SequentialSampler(self.train_dataset)


def answer(request: Answer) -> Answer:
    model = opened(request["model"], tuple(request.get("options", {}).items()))
    rows = rows_of(request["instances"], family_of(request["model"]).relation)
    collated = partial(collate, pad=model.config.pad_token_id or 0)
    if "check" in request:
        return {"loss": checked_loss(model, collated(rows[: request["check"]]))}
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
        InOrder(model=model, args=options, train_dataset=given, data_collator=collated, callbacks=[clock]).train()
    lengths = [len(given[number]["input_ids"]) for number in range(size, size * num_steps)]
    return {"seconds": clock.times[-1] - clock.times[0], "tokens": sum(lengths)}


@torch.no_grad()
def checked_loss(model: Any, batch: Tensors) -> float:
    """Where the model would draw, all draws are the vocabulary's first token."""
    draws = isinstance(model, JointElectra)
    drawn = {"drawn": torch.zeros_like(batch["labels"][batch["labels"] != IGNORED])} if draws else {}
    return float(model.eval()(**batch, **drawn)["loss"])


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    set_up()
    return {name: version(name) for name in ("transformers", "accelerate", "torch")}, answer


if __name__ == "__main__":
    answer_requests(make, peer_engine)
