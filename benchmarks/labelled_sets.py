"""Labelled sets of the folder `shared`: the files of a set enter, rows of plain values leave, in one form for all.

A row has `text`, `other`, `label`, `score`; or `words` and `tags`; or `question`, `context` and `answers`. The order
is a fixed draw: fewer rows are the first ones of more.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertie.data.rows import open_rows

SEED = 5

Row = dict[str, Any]
Parts = dict[str, list[Row]]  # train, dev, test


@dataclass(frozen=True)
class LabelledSet:
    columns: Mapping[str, str]  # our name -> that of the file
    files: Mapping[str, str]  # part -> file
    format: str | None = None  # where the file does not tell it
    header: bool | None = None
    held_out: int = 0  # rows of train that are the test, where there is no file of it

    def read(self, path: Path) -> list[Row]:
        rows = open_rows(path, self.format, header=self.header)
        return [{ours: row.values[theirs] for ours, theirs in self.columns.items()} for row in rows]


TEXT_AND_LABEL = {"text": "sentence", "label": "label"}
WORDS_AND_TAGS = {"words": "words", "tags": "tags"}
QUESTIONS = {name: name for name in ("id", "title", "question", "context", "answers")}
PARAPHRASES = {"text": "#1 String", "other": "#2 String", "label": "Quality"}
SIMILARITIES = {"text": "column6", "other": "column7", "score": "column5"}

SETS = {
    "sst2": LabelledSet(
        TEXT_AND_LABEL,
        {"train": "sst2/train_full.tsv", "dev": "sst2/dev.tsv", "test": "sst2/test-labeled.tsv"},
        "tsv",
    ),
    "conll": LabelledSet(
        WORDS_AND_TAGS,
        {part: f"conll2003/{part}.txt" for part in ("train", "dev", "test")},
        "conll",
    ),
    "stsb": LabelledSet(
        SIMILARITIES,
        {part: f"stsb/sts-{part}.tsv" for part in ("train", "dev", "test")},
        "tsv",
        header=False,
    ),
    "mrpc": LabelledSet(
        PARAPHRASES,
        {part: f"mrpc/msr_paraphrase_{part}.txt" for part in ("train", "test")},
        "tsv",
    ),
    "squad": LabelledSet(QUESTIONS, {"train": "squad/train.json", "test": "squad/dev.json"}, "squad"),
    "chnsenticorp": LabelledSet(
        {"text": "review", "label": "label"},
        {"train": "chnsenticorp/ChnSentiCorp_htl_all.csv"},
        "csv",
        held_out=1200,
    ),
    "msra": LabelledSet(WORDS_AND_TAGS, {"train": "msra_ner/train.txt", "test": "msra_ner/dev.txt"}, "conll"),
    "cmrc": LabelledSet(
        QUESTIONS,
        {"train": "cmrc2018/cmrc2018_dev.json", "test": "cmrc2018/cmrc2018_trial.json"},
        "squad",
    ),
}


def read_set(name: str, files: Mapping[str, Path]) -> Parts:
    """All rows of each part, in the order of the draw."""
    wanted = SETS[name]
    parts = {part: drawn(wanted.read(path)) for part, path in files.items()}
    if wanted.held_out:
        train = parts["train"]
        num_held = min(wanted.held_out, len(train) // 2)
        parts |= {"train": train[num_held:], "test": train[:num_held]}
    return parts


def drawn(rows: Sequence[Row]) -> list[Row]:
    """All of them, the same order at every call."""
    return random.Random(SEED).sample(list(rows), len(rows))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]
