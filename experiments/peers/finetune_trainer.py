"""The `transformers` Trainer fine-tunes: rows of `task_sets` and a model folder enter, answers to the test leave.

`python -m experiments.peers.finetune_trainer TASK --rows FOLDER --base MODEL --out FILE`. Everything that is not said
on the command line is as the Trainer has it. Answers are lines as `bertie predict` writes them.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.contenders.task_features import (
    PREPARATIONS,
    Feature,
    Row,
    apart,
    first_places,
    pair_features,
    window_encoding,
    word_encoding,
)
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments, set_seed

TRIED, LONGEST = 20, 30  # beginnings and ends that are tried; tokens of an answer: as `run_qa.py` has them
ROWS = 32  # of a batch that is answered

Answers = list[dict[str, Any]]


def labels_of(task: str, rows: Sequence[Row]) -> list[str]:
    if task == "tag":
        return sorted({tag for row in rows for tag in row["tags"]})
    return sorted({row["label"] for row in rows}) if task == "classify" else []


NUM_OUTPUTS = {"similarity": 1, "answer": 2}  # the others have one a label


@torch.inference_mode()
def outputs_of(model: Any, tokenizer: Any, features: Sequence[Feature]) -> list[list[np.ndarray]]:
    """What the model says of each feature, without padding where it says something of every token."""
    collate, found = DataCollatorWithPadding(tokenizer), {}
    order = sorted(range(len(features)), key=lambda number: len(features[number]["input_ids"]))
    for begin in range(0, len(order), ROWS):
        numbers = order[begin : begin + ROWS]
        told = model(**collate([dict(features[number]) for number in numbers])).to_tuple()
        for place, number in enumerate(numbers):
            found[number] = [logits[place].numpy() for logits in told]
    return [found[number] for number in range(len(features))]


def label_answers(model: Any, tokenizer: Any, rows: Sequence[Row], length: int, labels: Sequence[str]) -> Answers:
    outputs = outputs_of(model, tokenizer, pair_features(rows, tokenizer, length))
    return [{"label": labels[int(logits.argmax())]} for (logits,) in outputs]


def score_answers(model: Any, tokenizer: Any, rows: Sequence[Row], length: int, labels: Sequence[str]) -> Answers:
    outputs = outputs_of(model, tokenizer, pair_features(rows, tokenizer, length))
    return [{"score": float(logits[0])} for (logits,) in outputs]


def tag_answers(model: Any, tokenizer: Any, rows: Sequence[Row], length: int, labels: Sequence[str]) -> Answers:
    """Words that were cut away are outside of every entity."""
    encoding = word_encoding(rows, tokenizer, length)
    answers = []
    for number, (logits,) in enumerate(outputs_of(model, tokenizer, apart(encoding))):
        best = logits[first_places(encoding.word_ids(number))].argmax(-1)
        tags = [labels[tag] for tag in best]
        answers.append({"tags": tags + ["O"] * (len(rows[number]["words"]) - len(tags))})
    return answers


def span_answers(model: Any, tokenizer: Any, rows: Sequence[Row], length: int, labels: Sequence[str]) -> Answers:
    """The best span of all windows of a passage."""
    encoding = window_encoding(rows, tokenizer, length)
    offsets, owners = encoding.pop("offset_mapping"), encoding.pop("overflow_to_sample_mapping")
    best: list[tuple[float, str]] = [(-np.inf, "")] * len(rows)
    for number, (begins, ends) in enumerate(outputs_of(model, tokenizer, apart(encoding))):
        owner = owners[number]
        inside = np.array([place for place, text in enumerate(encoding.sequence_ids(number)) if text == 1])
        score, begin, end = best_span(begins, ends, inside)
        if score > best[owner][0]:
            passage = rows[owner]["context"]
            best[owner] = score, passage[offsets[number][begin][0] : offsets[number][end][1]]
    return [{"text": text} for _, text in best]


def best_span(begins: np.ndarray, ends: np.ndarray, inside: np.ndarray) -> tuple[float, int, int]:
    """[L] logits each; `inside` are the places of the passage."""
    firsts, lasts = (inside[np.argsort(-logits[inside])[:TRIED]] for logits in (begins, ends))
    spans = [
        (float(begins[first] + ends[last]), int(first), int(last))
        for first in firsts
        for last in lasts
        if first <= last < first + LONGEST
    ]
    return max(spans, default=(-np.inf, 0, 0))


ANSWERS: dict[str, Callable[[Any, Any, Sequence[Row], int, Sequence[str]], Answers]] = {
    "classify": label_answers,
    "similarity": score_answers,
    "tag": tag_answers,
    "answer": span_answers,
}


def train(model: Any, features: Sequence[Feature], collator: Any, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            use_cpu=True,
            per_device_train_batch_size=options.batch,
            num_train_epochs=options.epochs,
            learning_rate=options.lr,
            seed=options.seed,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        given: Any = features
        Trainer(model=model, args=arguments, train_dataset=given, data_collator=collator).train()


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=ANSWERS)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--max-length", dest="length", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    set_seed(options.seed)  # the new head is drawn before the Trainer sets it
    rows, test = read(options.rows / "train.jsonl"), read(options.rows / "test.jsonl")
    preparation, labels = PREPARATIONS[options.task], labels_of(options.task, rows)
    tokenizer = AutoTokenizer.from_pretrained(options.base)
    model = preparation.open_model(options.base, NUM_OUTPUTS.get(options.task, len(labels)))
    features = preparation.features(rows, tokenizer, options.length, labels)
    train(model, features, preparation.collator(tokenizer), options)
    answers = ANSWERS[options.task](model.eval(), tokenizer, test, options.length, labels)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)


if __name__ == "__main__":
    main()
