"""The trainer of `sentence-transformers`: a model folder and rows enter with each request, seconds leave.

It tokenises the rows of a step inside that step, as it always does.
"""

import json
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss, MultipleNegativesRankingLoss

from benchmarks.contenders.pretrain_trainer import Clock
from benchmarks.contenders.protocol import Answer, answer_requests
from benchmarks.contenders.torch_engine import peer_engine, set_up

RATE = 5e-5
MOST = 5.0  # the highest score of STS-B
LOSSES: dict[str, Any] = {"cosine": CosineSimilarityLoss, "simcse": MultipleNegativesRankingLoss}


@cache
def opened(folder: str, length: int) -> Any:
    model = SentenceTransformer(folder, device="cpu")
    model.max_seq_length = length
    return model


def columns_of(task: str, path: str, num_rows: int) -> dict[str, list[Any]]:
    with Path(path).open(encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream][:num_rows]
    texts = [row["text"] for row in rows]
    if task == "simcse":
        return {"anchor": texts, "positive": texts}
    scores = [float(row["score"]) / MOST for row in rows]
    return {"sentence1": texts, "sentence2": [row["other"] for row in rows], "score": scores}


def in_order(dataset: Any, batch_size: int, drop_last: bool, **given: Any) -> DefaultBatchSampler:
    """Not shuffled: all contenders see the same rows in the same steps."""
    rows: Any = torch.utils.data.SequentialSampler(dataset)
    return DefaultBatchSampler(rows, batch_size=batch_size, drop_last=drop_last)


def answer(request: Answer) -> Answer:
    model, size = opened(request["model"], request["length"]), request["batch"]
    loss = LOSSES[request["task"]](model)
    if "check" in request:
        return checked(model, loss, columns_of(request["task"], request["rows"], size))
    num_steps = request["steps"] + 1  # the first one warms up
    data = Dataset.from_dict(columns_of(request["task"], request["rows"], size * num_steps))
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        options = SentenceTransformerTrainingArguments(
            output_dir=scratch,
            use_cpu=True,
            per_device_train_batch_size=size,
            max_steps=num_steps,
            learning_rate=RATE,
            batch_sampler=in_order,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        SentenceTransformerTrainer(model=model, args=options, train_dataset=data, loss=loss, callbacks=[clock]).train()
    return {"seconds": clock.times[-1] - clock.times[0], "examples": size * request["steps"]}


@torch.no_grad()
def checked(model: Any, loss: Any, columns: dict[str, list[Any]]) -> Answer:
    """Tokens are those of different texts: a text that is its own pair counts once."""
    model.eval()
    scores = columns.pop("score", None)
    features = [model.preprocess(texts) for texts in columns.values()]
    counted = features if scores is not None else features[:1]
    found = loss(features, None if scores is None else torch.tensor(scores))
    return {"loss": float(found), "tokens": sum(int(one["attention_mask"].sum()) for one in counted)}


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    set_up()
    return {name: version(name) for name in ("sentence-transformers", "transformers", "torch")}, answer


if __name__ == "__main__":
    answer_requests(make, peer_engine)
