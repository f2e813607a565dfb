"""The benchmark of siamese encoders: both sides read the same rows, have the same loss and are told apart by speed."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.contenders import finetune_bertie
from benchmarks.figures import OURS
from benchmarks.labelled_sets import write_rows
from benchmarks.learning_turns import PEAK, Turns, describe, figures
from benchmarks.siamese import EXERCISES, PEER, WISH

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

pytest.importorskip("datasets", reason="the peer needs it")
pytest.importorskip("sentence_transformers", reason="the peer needs it")

from benchmarks.contenders import siamese_trainer

BATCH = 4


@pytest.fixture
def request_of(tmp_path: Path) -> Any:
    words = [f"w{number}" for number in range(60)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer is not None
    Pretrained(Model.new(bert(SIZES["tiny"], tokenizer.size), seed=0), tokenizer).save(tmp_path / "tiny")
    rows = [
        {"text": " ".join(words[: 3 + number]), "other": f"w{number} w9", "score": str(number / 3)}
        for number in range(12)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    files = {"model": str(tmp_path / "tiny"), "rows": str(tmp_path / "rows.jsonl")}
    return lambda task: {**files, "task": task, "labels": [], "length": 8, "batch": BATCH}


@pytest.mark.parametrize("task", ["cosine", "simcse"])
def test_both_sides_have_the_same_loss_and_tokens(task: str, request_of: Any) -> None:
    request = {**request_of(task), "check": True}
    ours, theirs = (contender.answer(request) for contender in (finetune_bertie, siamese_trainer))
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
    assert ours["tokens"] == theirs["tokens"]


def test_a_turn_of_ours_counts_its_rows(request_of: Any) -> None:
    turn = finetune_bertie.answer({**request_of("simcse"), "steps": 2})
    assert turn["examples"] == 2 * BATCH and turn["seconds"] > 0
    pairs = finetune_bertie.answer({**request_of("cosine"), "steps": 2})
    assert 0 < pairs["operations"] < turn["operations"], "the second text of a pair is shorter than the first"


@pytest.mark.slow
def test_a_turn_of_the_peer_counts_its_rows(request_of: Any) -> None:
    pytest.importorskip("accelerate", reason="the trainer needs it")
    turn = siamese_trainer.answer({**request_of("cosine"), "steps": 2})
    assert turn["examples"] == 2 * BATCH and turn["seconds"] > 0


def test_three_times_as_fast_is_the_bar() -> None:
    turns: Turns = {
        PEER: [{"seconds": 2.0, "examples": 100}],
        OURS: [{"seconds": 0.6, "examples": 100, "operations": 1e9}],
    }
    turns[PEAK] = [{"flops": 2e10, "product": "a", "default": "MKL", "engines": {"MKL": 2e10}}]
    found = figures("STS-B", WISH, turns, {PEER: 0.1, OURS: 0.1})
    assert describe({"STS-B": found}, PEER, {})[-1].endswith("3.33   bar 3.00: holds")
    assert {exercise.task for exercise in EXERCISES.values()} == {"cosine", "simcse"}
