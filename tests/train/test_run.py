"""Runs: what is in the folder, what is learned, what is refused, and how a run goes on."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import bertie
from bertie.data.corpus import Corpus
from bertie.data.shapes import Pairs, Segments
from bertie.errors import FolderError, SpecError, TokenizerError, UserError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.text.tokenizer import Tokenizer
from bertie.train.checkpoint import WEIGHTS
from bertie.train.loop import NotFiniteError
from bertie.train.optimiser import AdamWSpec
from bertie.train.options import PretrainOptions
from bertie.train.run import pretrain
from bertie.train.run_folder import locked
from bertie.train.schedule import Linear
from bertie.train.stopping import Stopped

Record = dict[str, Any]
SMALL = PretrainOptions(
    steps=12,
    length=32,
    batch_tokens=256,
    micro_tokens=128,
    adamw=AdamWSpec(rate=1e-3),
    schedule=Linear(warmup=2),
    save_every=4,
    eval_every=6,
    held_out=10,
    eval_rows=16,
)


@pytest.fixture(scope="module")
def corpus(make_corpus: Callable[..., Corpus], tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c", 100)


@pytest.fixture
def go(corpus: Corpus, tokenizer: Tokenizer, recipe: Callable[..., Recipe]) -> Callable[..., Record]:
    """`go(folder, steps=20)`: a tiny run with dropout, with some options replaced."""

    def run(folder: Path, tell: Callable[[Record], None] | None = None, **changes: Any) -> Record:
        model = changes.pop("model", None) or Model.new(recipe(dropout=0.1), seed=1)
        return pretrain(folder, model, corpus, tokenizer, SMALL.replace(**changes), tell=tell)

    return run


def stopping_at(step: int, number: int = signal.SIGTERM) -> Callable[[Record], None]:
    def tell(record: Record) -> None:
        if record["event"] == "step" and record["step"] == step:
            os.kill(os.getpid(), number)

    return tell


def weights(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


def events(folder: Path, event: str) -> list[Record]:
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [record for record in records if record["event"] == event]


def test_what_a_run_leaves(go: Callable[..., Record], tokenizer: Tokenizer, tmp_path: Path) -> None:
    summary = go(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        *("checkpoints", "lock", "log.jsonl", "model", "options.json", "summary.json")
    ]
    loaded = bertie.load(tmp_path / "run")
    assert loaded.tokenizer is not None and loaded.tokenizer.digest == tokenizer.digest
    assert loaded.fill("w3 w4 [MASK] w6", top=3)
    assert loaded.card["training"]["steps"] == 12
    options = json.loads((tmp_path / "run" / "options.json").read_text())
    assert options["options"] == json.loads(SMALL.to_json())
    assert Recipe.parse(options["recipe"]) == loaded.recipe
    logged = events(tmp_path / "run", "step")
    assert [record["step"] for record in logged] == list(range(1, 13))
    assert {"loss", "masked_lm", "next_sentence", "lr", "tokens_per_second"} <= logged[0].keys()
    assert logged[-1]["tokens"] == summary["tokens"] > 12 * 100
    assert [record["step"] for record in events(tmp_path / "run", "evaluation")] == [6, 12]
    steps = [path.name for path in sorted((tmp_path / "run" / "checkpoints").iterdir())]
    assert steps[-2:] == ["step-00000008", "step-00000012"]


def test_a_finished_run_is_not_done_again(go: Callable[..., Record], tmp_path: Path) -> None:
    first = go(tmp_path / "run")
    told: list[Record] = []
    assert go(tmp_path / "run", told.append) == first
    assert told == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_and_resumed_is_undisturbed(go: Callable[..., Record], tmp_path: Path, number: int) -> None:
    go(tmp_path / "whole")
    with pytest.raises(Stopped) as stopped:
        go(tmp_path / "halted", stopping_at(5, number))
    assert (stopped.value.step, stopped.value.exit_code) == (5, 128 + number)
    assert not (tmp_path / "halted" / "model").exists()
    go(tmp_path / "halted")
    assert weights(tmp_path / "halted") == weights(tmp_path / "whole")
    assert [(record["step"], record["exact"]) for record in events(tmp_path / "halted", "resume")] == [(5, True)]
    assert events(tmp_path / "halted", "evaluation")[-1]["loss"] == events(tmp_path / "whole", "evaluation")[-1]["loss"]


def test_a_damaged_checkpoint_is_told_and_made_good(go: Callable[..., Record], tmp_path: Path) -> None:
    go(tmp_path / "whole")
    with pytest.raises(Stopped):
        go(tmp_path / "halted", stopping_at(9))
    (tmp_path / "halted" / "checkpoints" / "step-00000009" / WEIGHTS).write_bytes(b"nothing")
    told: list[Record] = []
    go(tmp_path / "halted", told.append)
    assert [record["event"] for record in told[:2]] == ["damaged", "resume"]
    assert "step-00000009" in told[0]["checkpoint"]
    assert told[1]["step"] == 8
    assert weights(tmp_path / "halted") == weights(tmp_path / "whole")


def test_a_kill_while_the_model_is_written_leaves_no_half_model(
    go: Callable[..., Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertie.train import run

    def fail(folder: Path, facts: Record) -> None:
        raise KeyboardInterrupt

    go(tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run, "write_summary", fail)
        go(tmp_path / "killed")
    (tmp_path / "killed" / ".model.abc").mkdir()
    (tmp_path / "killed" / "model" / "model.safetensors").write_bytes(b"half")
    go(tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert not (tmp_path / "killed" / ".model.abc").exists()


def test_other_options_are_refused_with_what_differs(go: Callable[..., Record], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(2))
    with pytest.raises(SpecError, match=r"options\.steps: 12 before, 13 now; options\.adamw\.rate: 0\.001 before"):
        go(tmp_path / "run", steps=13, adamw=AdamWSpec(rate=0.5))


def test_another_model_is_refused(go: Callable[..., Record], recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(2))
    with pytest.raises(SpecError, match=r"recipe\.encoder\.width: 32 before, 48 now"):
        go(tmp_path / "run", model=Model.new(recipe(width=48)))


def test_one_run_at_a_time(go: Callable[..., Record], tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(FolderError, match="another run"):
        go(tmp_path / "run")


def test_a_folder_of_something_else_is_left_alone(go: Callable[..., Record], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FolderError, match=r"not empty \(thesis\.tex\)"):
        go(tmp_path)


@pytest.mark.parametrize(
    ("objectives", "length", "kind", "message"),
    [
        ((), 32, SpecError, "no objective"),
        ((MaskedLM(samples=Segments()),), 600, SpecError, "longer than the model takes"),
        ((MaskedLM(samples=Pairs()),), 200, SpecError, "too small for rows"),
    ],
)
def test_what_cannot_work_is_refused_before_the_folder_is_made(
    go: Callable[..., Record],
    recipe: Callable[..., Recipe],
    tmp_path: Path,
    objectives: tuple[MaskedLM, ...],
    length: int,
    kind: type[UserError],
    message: str,
) -> None:
    with pytest.raises(kind, match=message):
        go(tmp_path / "run", model=Model.new(recipe(objectives)), length=length)
    assert not (tmp_path / "run").exists()


def test_a_model_with_too_few_rows_is_refused(
    go: Callable[..., Record], recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    with pytest.raises(TokenizerError, match="65 ids, the model only 40 rows"):
        go(tmp_path / "run", model=Model.new(recipe(vocab_size=40)))


def test_a_loss_that_is_not_finite_keeps_the_last_good_state(
    go: Callable[..., Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: Callable[..., Recipe]
) -> None:
    model = Model.new(recipe(), seed=1)

    def spoil(record: Record) -> None:
        if record["event"] == "step" and record["step"] == 6:
            monkeypatch.setattr(model, "auxiliary_loss", lambda: next(model.parameters()).sum() * float("nan"))

    with pytest.raises(NotFiniteError, match="step 7"):
        go(tmp_path / "run", spoil, model=model)
    assert events(tmp_path / "run", "saved")[-1]["step"] == 6
    monkeypatch.undo()
    go(tmp_path / "run", model=Model.new(recipe(), seed=1))
    go(tmp_path / "whole", model=Model.new(recipe(), seed=1))
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_micro_batches_change_next_to_nothing(
    go: Callable[..., Record], recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    losses = []
    for micro_tokens in (64, 256):
        folder = tmp_path / str(micro_tokens)
        go(folder, model=Model.new(recipe(), seed=1), micro_tokens=micro_tokens)
        losses.append([record["loss"] for record in events(folder, "step")])
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_without_held_out_text_nothing_is_evaluated(go: Callable[..., Record], tmp_path: Path) -> None:
    assert go(tmp_path / "run", held_out=0)["evaluation"] is None
    assert events(tmp_path / "run", "evaluation") == []


def test_a_run_that_learns_nothing_is_warned_of(go: Callable[..., Record], tmp_path: Path) -> None:
    go(tmp_path / "run", adamw=AdamWSpec(rate=1e-9))
    assert [record["step"] for record in events(tmp_path / "run", "warning")] == [6, 12]


def test_another_number_of_threads_is_told(go: Callable[..., Record], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(2))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        go(tmp_path / "run")
    finally:
        torch.set_num_threads(before)
    assert events(tmp_path / "run", "resume")[0]["exact"] is False
