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
from bertie.data.data_schedule import Curriculum, Phase, Ramp
from bertie.data.shapes import Pairs, Segments
from bertie.disk import sha256_of
from bertie.errors import FolderError, SpecError, TokenizerError, UserError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps, Time, Tokens
from bertie.train.folder import run_state
from bertie.train.folder.checkpoint import WEIGHTS
from bertie.train.folder.run_folder import locked
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.learning.schedule import Linear
from bertie.train.loop import NotFiniteError
from bertie.train.pretraining.evaluation import Evaluation
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.run import pretrain
from bertie.train.stopping import Stopped

Record = dict[str, Any]
SMALL = PretrainOptions(
    budget=Steps(steps=12),
    length=32,
    batch_tokens=256,
    micro_tokens=128,
    optimizer=AdamWSpec(rate=1e-3),
    schedule=Linear(warmup=1 / 6),
    save_every=4,
    eval_every=6,
    held_out=10,
    eval_rows=16,
)


TWO_LENGTHS = Curriculum(phases=(Phase(share=0.5, length=16), Phase(share=0.5, length=32)))


@pytest.fixture(scope="module")
def corpus(make_corpus: Callable[..., Corpus], tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c", 100)


@pytest.fixture
def go(corpus: Corpus, tokenizer: Tokenizer, recipe: Callable[..., Recipe]) -> Callable[..., Record]:
    """`go(folder, budget=Steps(steps=20))`: a tiny run with dropout, with some options replaced."""

    def run(folder: Path, on_record: Callable[[Record], None] = lambda record: None, **changes: Any) -> Record:
        model = changes.pop("model", None) or Model.new(recipe(dropout=0.1), seed=1)
        options = SMALL.replace(**changes)
        return pretrain(folder, model, corpus, tokenizer, options, on_event=lambda event: on_record(dict(event.data)))

    return run


def stopping_at(step: int, number: int = signal.SIGTERM) -> Callable[[Record], None]:
    def on_record(record: Record) -> None:
        if record["event"] == "step" and record["step"] == step:
            os.kill(os.getpid(), number)

    return on_record


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


def test_a_signal_in_the_last_step_stops_what_would_follow(go: Callable[..., Record], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(12, signal.SIGINT))
    assert (tmp_path / "run" / "model").exists(), "the run itself had ended"
    told: list[Record] = []
    assert go(tmp_path / "run", told.append)["steps"] == 12
    assert told == []


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
    (tmp_path / "killed" / "model" / ".new-abc").mkdir()
    (tmp_path / "killed" / "model" / "model.safetensors").write_bytes(b"half")
    go(tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert not (tmp_path / "killed" / "model" / ".new-abc").exists()


def test_other_options_are_refused_with_what_differs(go: Callable[..., Record], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(2))
    with pytest.raises(SpecError, match=r"`steps` was 12, now 13; `lr` was 0\.001, now 0\.5"):
        go(tmp_path / "run", budget=Steps(steps=13), optimizer=AdamWSpec(rate=0.5))


def test_another_model_is_refused(go: Callable[..., Record], recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(2))
    with pytest.raises(SpecError, match=r"the model that it starts from was another"):
        go(tmp_path / "run", model=Model.new(recipe(width=48)))


def test_one_run_at_a_time(go: Callable[..., Record], tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(FolderError, match="another process is using"):
        go(tmp_path / "run")


def test_a_folder_of_something_else_is_left_alone(go: Callable[..., Record], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FolderError, match=r"not empty \(thesis\.tex\)"):
        go(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


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
    kept = bertie.load(tmp_path / "run" / "last-good")  # to go on from with another learning rate
    assert kept.card["training"]["steps"] == 4
    assert all(torch.isfinite(parameter).all() for parameter in kept.model.parameters())
    monkeypatch.undo()
    go(tmp_path / "again", model=kept.model)
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


def test_a_measurement_that_is_no_number_is_never_the_best(
    go: Callable[..., Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = iter([float("nan"), 3.0, float("nan"), 2.5])
    monkeypatch.setattr(Evaluation, "__call__", lambda self, model: {"loss": next(measured)})
    assert go(tmp_path / "run", eval_every=3)["best"] == {"step": 12, "loss": 2.5, "rank": 2.5}


def test_without_held_out_text_nothing_is_evaluated(go: Callable[..., Record], tmp_path: Path) -> None:
    assert go(tmp_path / "run", held_out=0)["evaluation"] is None
    assert events(tmp_path / "run", "evaluation") == []


def test_a_run_that_learns_nothing_is_warned_of(go: Callable[..., Record], tmp_path: Path) -> None:
    go(tmp_path / "run", optimizer=AdamWSpec(rate=1e-9))
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


def test_another_device_is_told(go: Callable[..., Record], tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(2))
    (state,) = (tmp_path / "run" / "checkpoints").glob("*/state.json")
    sums = state.with_name("SHA256SUMS")
    before, text = sha256_of(state), state.read_text()
    assert '"device": "cpu"' in text
    state.write_text(text.replace('"device": "cpu"', '"device": "cuda (a GPU)"'))
    sums.write_text(sums.read_text().replace(before, sha256_of(state)))
    go(tmp_path / "run")
    (resumed,) = events(tmp_path / "run", "resume")
    assert (resumed["exact"], resumed["why"]) == (False, ["device was cuda (a GPU)"])


def logged(folder: Path, figure: str) -> list[float]:
    return [record[figure] for record in events(folder, "step")]


def test_a_budget_of_tokens_ends_when_they_are_used_up(go: Callable[..., Record], tmp_path: Path) -> None:
    summary = go(tmp_path / "run", budget=Tokens(tokens=2000))
    tokens = logged(tmp_path / "run", "tokens")
    assert tokens[-2] < 2000 <= tokens[-1] == summary["tokens"]
    assert logged(tmp_path / "run", "progress") == [min(count / 2000, 1) for count in tokens]
    rates = logged(tmp_path / "run", "lr")
    assert rates[0] == pytest.approx(1e-3 * tokens[0] / 2000 * 6)
    assert rates[-1] == pytest.approx(1e-3 * (1 - tokens[-2] / 2000) * 6 / 5)
    assert events(tmp_path / "run", "evaluation")[-1]["step"] == len(tokens) == summary["steps"]


COURSES: list[Record] = [
    {"budget": Tokens(tokens=2000)},
    {"budget": Tokens(tokens=2000), "curriculum": TWO_LENGTHS, "ramp": Ramp(begin=64, share=0.6)},
    {"curriculum": TWO_LENGTHS, "ramp": Ramp(begin=64, share=0.6), "static_masks": 2},
]


@pytest.mark.parametrize("changes", COURSES)
@pytest.mark.parametrize("step", [2, 7])
def test_every_counted_course_is_resumed_exactly(
    go: Callable[..., Record], tmp_path: Path, changes: Record, step: int
) -> None:
    go(tmp_path / "whole", **changes)
    with pytest.raises(Stopped):
        go(tmp_path / "halted", stopping_at(step), **changes)
    go(tmp_path / "halted", **changes)
    assert weights(tmp_path / "halted") == weights(tmp_path / "whole")
    assert logged(tmp_path / "halted", "tokens") == logged(tmp_path / "whole", "tokens")


def test_rows_and_batches_grow_by_the_share_of_the_run(go: Callable[..., Record], tmp_path: Path) -> None:
    seen = []

    def note(record: Record) -> None:
        if record["event"] == "step":
            seen.append(record["tokens"])

    go(tmp_path / "run", note, curriculum=TWO_LENGTHS, ramp=Ramp(begin=64, share=0.5), held_out=0)
    sizes = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert sizes[0] <= 64 and max(sizes[:3]) < min(sizes[6:])


class Clock:
    """In the place of the module `time`: every look costs a tenth of a second."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        self.now += 0.1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(run_state, "time", made)
    return made


def test_a_budget_of_time_follows_the_clock(go: Callable[..., Record], tmp_path: Path, clock: Clock) -> None:
    summary = go(tmp_path / "run", budget=Time(seconds=20), schedule=Linear(warmup=0.25))
    progress = logged(tmp_path / "run", "progress")
    assert progress == sorted(progress) and progress[-2] < 1 == progress[-1]
    assert 20 < summary["seconds"] < 23
    rates = logged(tmp_path / "run", "lr")
    top = rates.index(max(rates))
    assert 0.2 < progress[top] < 0.35
    assert 0 < rates[0] < rates[top // 2] < rates[top] == pytest.approx(1e-3, rel=0.1)
    assert rates[-1] < 0.1 * rates[top]
    assert events(tmp_path / "run", "saved")[-1]["step"] == summary["steps"]


def test_all_that_a_run_does_takes_of_its_time(go: Callable[..., Record], tmp_path: Path, clock: Clock) -> None:
    def pause(record: Record) -> None:
        clock.now += 2.5 if record["event"] in ("evaluation", "saved") else 0.0

    idle = go(tmp_path / "idle", budget=Time(seconds=15))["steps"]
    assert go(tmp_path / "busy", pause, budget=Time(seconds=15))["steps"] < idle / 2


def test_time_is_counted_over_all_sittings_and_not_exactly(
    go: Callable[..., Record], tmp_path: Path, clock: Clock
) -> None:
    with pytest.raises(Stopped):
        go(tmp_path / "run", stopping_at(5), budget=Time(seconds=20))
    clock.now += 1000  # between the sittings nothing is counted
    go(tmp_path / "run", budget=Time(seconds=20))
    (resumed,) = events(tmp_path / "run", "resume")
    assert (resumed["exact"], resumed["why"]) == (False, ["its budget is time"])
    seconds = logged(tmp_path / "run", "seconds")
    assert seconds == sorted(seconds) and seconds[-1] < 22
