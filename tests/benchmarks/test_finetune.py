"""The fine-tuning benchmark's own arithmetic: rows, losses of both sides, bars."""

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmarks.contenders import finetune_bertie, finetune_trainer
from benchmarks.figures import OURS, SAME_ENGINE
from benchmarks.finetune import EXERCISES, PEER, describe, labels_of, write_head
from benchmarks.labelled_sets import Row, write_rows
from benchmarks.learning_turns import PEAK, Turns, figures, recorded, refuse_other_losses

from bertie.errors import UserError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

NUM_ROWS, BATCH = 12, 4
CONTENDERS = [finetune_bertie, finetune_trainer]
TASKS = {"classify": 128, "tag": 256, "answer": 384}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of few words, some of which are two tokens."""
    found = tmp_path_factory.mktemp("model")
    words = [f"w{number}" for number in range(60)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "##ly", ".", *words]
    (found / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(found)
    assert tokenizer is not None
    Pretrained(Model.new(bert(SIZES["tiny"], tokenizer.size), seed=0), tokenizer).save(found / "tiny")
    return found / "tiny"


def some_words(rng: random.Random, count: int) -> list[str]:
    return [rng.choice(["goodly", "bad", *(f"w{number}" for number in range(60))]) for _ in range(count)]


def made_rows(task: str) -> list[Row]:
    """Two of three passages have several windows."""
    rng = random.Random(0)
    rows: list[Row] = []
    for number in range(NUM_ROWS):
        if task == "classify":
            rows.append({"text": " ".join(some_words(rng, 3 + number)), "label": str(number % 2)})
        elif task == "tag":
            words = some_words(rng, 3 + number)
            tags = ["B-PER" if word == "bad" else "O" for word in words[:-1]]
            rows.append({"words": words, "tags": [*tags, "B-PER"]})
        else:
            words = some_words(rng, 100 + 200 * (number % 3))
            start = len(" ".join(words[:40])) + 1
            answer = {"text": " ".join(words[40:42]), "answer_start": start}
            rows.append({"question": "w1 w2", "context": " ".join(words), "answers": [answer]})
    return rows


@pytest.fixture
def request_of(folder: Path, tmp_path: Path) -> Any:
    def make(task: str) -> dict[str, Any]:
        rows = made_rows(task)
        labels = labels_of(task, rows)
        write_rows(tmp_path / "rows.jsonl", rows)
        write_head(tmp_path / "head.npz", len(labels) or 2, SIZES["tiny"].width)
        files = {"model": str(folder), "rows": str(tmp_path / "rows.jsonl"), "head": str(tmp_path / "head.npz")}
        return {**files, "task": task, "labels": labels, "length": TASKS[task], "batch": BATCH}

    return make


@pytest.mark.parametrize("task", TASKS)
def test_both_sides_have_the_same_loss_and_tokens(task: str, request_of: Any) -> None:
    request = {**request_of(task), "check": True}
    ours, theirs = (contender.answer(request) for contender in CONTENDERS)
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    assert ours["tokens"] == theirs["tokens"]


def test_both_sides_have_the_same_windows(request_of: Any) -> None:
    """All of them: each passage of 600 words gives two."""
    request = request_of("answer")
    tokenizer = finetune_trainer.tokenizer_of(request["model"])
    theirs = finetune_trainer.features_of("answer", request["rows"], request["model"], 384, ())
    _, _, own_tokenizer = finetune_bertie.opened("answer", (), request["model"], request["head"])
    request["batch"] = len(theirs)
    ours = next(finetune_bertie.batches_of(request, own_tokenizer))
    assert len(theirs) > NUM_ROWS and tokenizer.cls_token_id == theirs[0]["input_ids"][0]
    for own, other in zip(ours, theirs, strict=True):
        assert own["tokens"].tolist() == other["input_ids"]  # type: ignore[union-attr]
        assert (int(own["begin"]), int(own["end"])) == (other["start_positions"], other["end_positions"])  # type: ignore[arg-type]


@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.parametrize("task", TASKS)
def test_a_turn_learns(task: str, contender: ModuleType, request_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves a lower loss than it found, and counts the examples of its steps but the first."""
    if contender is finetune_trainer:
        pytest.importorskip("accelerate", reason="the Trainer needs it")
    request = request_of(task)
    before = contender.answer({**request, "check": True})["loss"]
    turn = contender.answer({**request, "steps": 5})
    assert turn["examples"] == 5 * BATCH
    assert turn["seconds"] > 0
    assert contender is finetune_trainer or turn["operations"] > 0
    assert contender.answer({**request, "check": True})["loss"] < before


def test_other_losses_are_refused() -> None:
    refuse_other_losses("SST-2", {PEER: {"loss": 0.70001, "tokens": 9}, OURS: {"loss": 0.7, "tokens": 9}})
    with pytest.raises(UserError, match="give other tokens"):
        refuse_other_losses("SST-2", {PEER: {"loss": 0.7, "tokens": 9}, OURS: {"loss": 0.7, "tokens": 8}})
    with pytest.raises(UserError, match="give other loss"):
        refuse_other_losses("SST-2", {PEER: {"loss": 0.7, "tokens": 9}, OURS: {"loss": 0.71, "tokens": 9}})


def test_the_best_round_counts_and_bars_are_told() -> None:
    turns: Turns = {
        PEER: [{"seconds": 2.0, "examples": 100}, {"seconds": 4.0, "examples": 100}],
        PEER + SAME_ENGINE: [{"seconds": 1.6, "examples": 100}, {"seconds": 2.0, "examples": 100}],
        OURS: [
            {"seconds": 1.0, "examples": 100, "operations": 5e9},
            {"seconds": 0.5, "examples": 100, "operations": 5e9},
        ],
        PEAK: [{"flops": 2e10, "product": "a", "default": "MKL", "engines": {"MKL": 1e10, "oneDNN": 2e10}}] * 2,
    }
    found = figures("SST-2", EXERCISES["SST-2"].wish, turns, {PEER: 0.7, OURS: 0.7})
    assert found["ratio"] == pytest.approx(4.0)
    assert found["paired_ratio"] == pytest.approx((2.0 + 8.0) / 2)
    assert found["share_of_peak"] == pytest.approx(0.5)
    assert found["bar"]["holds"] and not found["bar"]["reached"]
    machine = {"cpu": "a processor", "threads": 2}
    engines = {PEER + SAME_ENGINE: "oneDNN, float32 products"}
    told = describe({"model": "a model", "machine": machine, "rounds": 2, "rows": {"SST-2": found}, "engines": engines})
    assert "bar 3.50: holds, goal 5.00: not yet" in told
    assert "50.0    200.0   4.00" in told
    assert "62.5            3.20  the peer with oneDNN, float32 products" in told
    bar, share, *speeds = recorded({"SST-2": found}, PEER)
    assert (bar.name, bar.must, bar.verdict, bar.doubt) == (
        "SST-2: times the peer",
        3.5,
        "holds",
        "rounds differ by 50%",
    )
    assert share.value == pytest.approx(0.5)
    assert [speed.value for speed in speeds] == [50.0, 62.5, 200.0]
