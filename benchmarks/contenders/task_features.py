"""Labelled rows as users of `transformers` prepare them: rows and a tokenizer enter, features for the Trainer leave.

It imports nothing of bertie.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
)

IGNORED = -100
STRIDE = 128  # tokens that neighbouring windows of a passage share

Row = Mapping[str, Any]
Feature = dict[str, Any]


def pair_features(rows: Sequence[Row], tokenizer: Any, length: int) -> list[Feature]:
    texts = [row["text"] for row in rows]
    others = [row["other"] for row in rows] if "other" in rows[0] else None
    return apart(tokenizer(texts, others, truncation=True, max_length=length))


def label_features(rows: Sequence[Row], tokenizer: Any, length: int, labels: Sequence[str]) -> list[Feature]:
    features = pair_features(rows, tokenizer, length)
    return [{**one, "label": labels.index(row["label"])} for one, row in zip(features, rows, strict=True)]


def score_features(rows: Sequence[Row], tokenizer: Any, length: int, labels: Sequence[str]) -> list[Feature]:
    features = pair_features(rows, tokenizer, length)
    return [{**one, "label": float(row["score"])} for one, row in zip(features, rows, strict=True)]


def tag_features(rows: Sequence[Row], tokenizer: Any, length: int, labels: Sequence[str]) -> list[Feature]:
    """The first token of a word has its tag, all others have none."""
    encoding = word_encoding(rows, tokenizer, length)
    features = apart(encoding)
    for number, row in enumerate(rows):
        tags = [IGNORED] * len(features[number]["input_ids"])
        for word, place in enumerate(first_places(encoding.word_ids(number))):
            tags[place] = labels.index(row["tags"][word])
        features[number]["labels"] = tags
    return features


def word_encoding(rows: Sequence[Row], tokenizer: Any, length: int) -> Any:
    words = [list(row["words"]) for row in rows]
    return tokenizer(words, is_split_into_words=True, truncation=True, max_length=length)


def first_places(word_ids: Sequence[int | None]) -> list[int]:
    """Where each word begins."""
    places: dict[int, int] = {}
    for place, word in enumerate(word_ids):
        if word is not None:
            places.setdefault(word, place)
    return list(places.values())


def answer_features(rows: Sequence[Row], tokenizer: Any, length: int, labels: Sequence[str]) -> list[Feature]:
    """One a window. A window that does not hold the whole answer points at its first token."""
    encoding = window_encoding(rows, tokenizer, length)
    offsets, owners = encoding.pop("offset_mapping"), encoding.pop("overflow_to_sample_mapping")
    features = apart(encoding)
    for number, feature in enumerate(features):
        answer = rows[owners[number]]["answers"][0]
        inside = [place for place, text in enumerate(encoding.sequence_ids(number)) if text == 1]
        start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        held = [place for place in inside if offsets[number][place][0] < end and offsets[number][place][1] > start]
        whole = bool(held) and offsets[number][held[0]][0] <= start and offsets[number][held[-1]][1] >= end
        feature["start_positions"], feature["end_positions"] = (held[0], held[-1]) if whole else (0, 0)
    return features


def window_encoding(rows: Sequence[Row], tokenizer: Any, length: int) -> Any:
    questions, passages = ([row[name] for row in rows] for name in ("question", "context"))
    return tokenizer(
        questions,
        passages,
        truncation="only_second",
        max_length=length,
        stride=STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )


def apart(encoding: Mapping[str, Sequence[Any]]) -> list[Feature]:
    """Columns to rows."""
    return [dict(zip(encoding, row, strict=True)) for row in zip(*encoding.values(), strict=True)]


@dataclass(frozen=True)
class Preparation:
    """Of one kind of task. `head` is the name of the layer that is new."""

    features: Callable[[Sequence[Row], Any, int, Sequence[str]], list[Feature]]
    model: Any
    collator: Callable[[Any], Any] = DataCollatorWithPadding
    head: str = "classifier"

    def open_model(self, folder: str, num_outputs: int) -> Any:
        return self.model.from_pretrained(folder, num_labels=num_outputs)


PREPARATIONS = {
    "classify": Preparation(label_features, AutoModelForSequenceClassification),
    "similarity": Preparation(score_features, AutoModelForSequenceClassification),
    "tag": Preparation(tag_features, AutoModelForTokenClassification, DataCollatorForTokenClassification),
    "answer": Preparation(answer_features, AutoModelForQuestionAnswering, head="qa_outputs"),
}


@torch.no_grad()
def set_head(model: torch.nn.Module, name: str, weight: Any, bias: Any) -> None:
    for part, values in (("weight", weight), ("bias", bias)):
        model.get_parameter(f"{name}.{part}").copy_(torch.as_tensor(values))
