"""The peer's answers: from what its model says to words, tags and spans, scored like bertie's own."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.labelled_sets import write_rows
from experiments.peers import finetune_trainer
from experiments.peers.finetune_trainer import ANSWERS, NUM_OUTPUTS, best_span, labels_of
from experiments.task_scores import MEASURES

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("model")
    words = ["good", "bad", "##ly", *(f"w{number}" for number in range(60))]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (found / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(found)
    assert tokenizer is not None
    Pretrained(Model.new(bert(SIZES["tiny"], tokenizer.size), seed=0), tokenizer).save(found / "tiny")
    return found / "tiny"


def made_rows(task: str) -> Rows:
    rng = random.Random(0)
    rows: Rows = []
    for number in range(16):
        words = [rng.choice(["goodly", *(f"w{number}" for number in range(60))]) for _ in range(3 + number)]
        answer = {"text": words[1], "answer_start": len(words[0]) + 1}
        kinds: dict[str, dict[str, Any]] = {
            "classify": {"text": " ".join(words), "label": str(number % 2)},
            "similarity": {"text": " ".join(words), "other": words[0], "score": f"{number / 4:.2f}"},
            "tag": {"words": words, "tags": ["B-X", *["O"] * (len(words) - 1)]},
            "answer": {"question": words[2], "context": " ".join(words * 40), "answers": [answer]},
        }
        rows.append(kinds[task])
    return rows


@pytest.mark.parametrize("task", ANSWERS)
def test_every_row_has_an_answer_that_can_be_scored(task: str, folder: Path) -> None:
    from benchmarks.contenders.task_features import PREPARATIONS
    from transformers import AutoTokenizer

    rows = made_rows(task)
    labels = labels_of(task, rows)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = PREPARATIONS[task].open_model(str(folder), NUM_OUTPUTS.get(task, len(labels))).eval()
    answers = ANSWERS[task](model, tokenizer, rows, 384, labels)
    assert len(answers) == len(rows)
    assert -1 <= MEASURES[task].figures(rows, answers)[MEASURES[task].main] <= 1
    for row, answer in zip(rows, answers, strict=True):
        if task == "tag":
            assert len(answer["tags"]) == len(row["words"])
        if task == "answer":
            assert answer["text"] and answer["text"] in row["context"]


def test_cut_words_are_outside(folder: Path) -> None:
    from benchmarks.contenders.task_features import PREPARATIONS
    from transformers import AutoTokenizer

    rows = made_rows("tag")
    model = PREPARATIONS["tag"].open_model(str(folder), 2).eval()
    answers = ANSWERS["tag"](model, AutoTokenizer.from_pretrained(folder), rows, 8, ["O", "B-X"])
    assert [len(answer["tags"]) for answer in answers] == [len(row["words"]) for row in rows]
    assert set(answers[-1]["tags"][6:]) == {"O"}


def test_the_best_span_is_inside_and_not_backwards() -> None:
    begins, ends = np.array([9.0, 1.0, 5.0, 0.0]), np.array([9.0, 7.0, 1.0, 2.0])
    assert best_span(begins, ends, np.array([1, 2, 3])) == (8.0, 1, 1)
    assert best_span(begins, ends, np.array([2, 3])) == (7.0, 2, 3)
    far = np.zeros(60)
    far[0] = 5.0
    late = np.zeros(60)
    late[40] = 5.0
    score, begin, end = best_span(far, late, np.arange(60))
    assert (score, end - begin < 30) == (5.0, True)


@pytest.mark.parametrize("task", ANSWERS)
def test_it_trains_and_answers(task: str, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="the Trainer needs it")
    for part in ("train", "test"):
        write_rows(tmp_path / f"{part}.jsonl", made_rows(task))
    out = tmp_path / "answers.jsonl"
    given = ["--rows", str(tmp_path), "--base", str(folder), "--epochs", "1", "--batch", "8", "--max-length", "256"]
    finetune_trainer.main([task, *given, "--out", str(out)])
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == 16
