"""Checkpoints: exact, whole or not there, kept as asked, and passed over when damaged."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bertie.batch import Batch
from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.train.folder import checkpoint
from bertie.train.folder.checkpoint import OPTIMIZER, STATE, SUMS, WEIGHTS, Checkpoints
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.loop import StepResult, take_step

Draw = Callable[..., list[Batch]]
ADAMW = AdamWSpec(rate=3e-3)


class Trainee:
    """A model with its optimizer, trained on batches that depend on the step alone, with dropout."""

    def __init__(self, recipe: Callable[..., Recipe], draw: Draw, seed: int = 0):
        self.model, self.draw = Model.new(recipe(dropout=0.1), seed=seed), draw
        self.optimizer = ADAMW.build(self.model)

    def go(self, first: int, last: int) -> list[StepResult]:
        return [
            take_step(self.model, self.draw(self.model, [[20, 12], [9]], seed=step), self.optimizer, 0.5, step=step)
            for step in range(first, last)
        ]

    def equals(self, other: "Trainee") -> bool:
        pairs = zip(self.model.named_parameters(), other.model.named_parameters(), strict=True)
        return all(name == again and torch.equal(one, two) for (name, one), (again, two) in pairs)


@pytest.fixture
def trainee(recipe: Callable[..., Recipe], draw_batches: Draw) -> Callable[..., Trainee]:
    return lambda seed=0: Trainee(recipe, draw_batches, seed)


def test_resumed_is_undisturbed_bit_for_bit(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    whole = trainee()
    undisturbed = whole.go(0, 12)
    halted = trainee()
    halted.go(0, 5)
    Checkpoints(tmp_path).save(5, halted.model, halted.optimizer, {"seen": 7})
    resumed = trainee(seed=9)
    restored = Checkpoints(tmp_path).restore(resumed.model, resumed.optimizer)
    assert restored is not None and (restored.step, restored.facts["seen"], restored.damaged) == (5, 7, ())
    results = resumed.go(5, 12)
    assert resumed.equals(whole)
    assert [result.norm for result in results] == [result.norm for result in undisturbed[5:]]


def test_without_any_checkpoint_there_is_nothing_to_restore(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    made = trainee()
    assert Checkpoints(tmp_path / "none").restore(made.model, made.optimizer) is None


def test_the_last_and_the_best_are_kept(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    made, kept = trainee(), Checkpoints(tmp_path, keep=2)
    made.go(0, 1)
    for step in (10, 20, 30, 40, 50):
        if step == 20:
            kept.best = 20
        kept.save(step, made.model, made.optimizer, {})
    assert kept.steps() == [20, 40, 50]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"step-000000{step}" for step in (20, 40, 50)]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", [WEIGHTS, OPTIMIZER, STATE, SUMS])
@pytest.mark.parametrize("how", [flip, Path.unlink, lambda path: os.truncate(path, 10)], ids=["flip", "gone", "short"])
def test_a_damaged_newest_checkpoint_falls_back(
    trainee: Callable[..., Trainee], tmp_path: Path, name: str, how: Callable[[Path], None]
) -> None:
    made, kept = trainee(), Checkpoints(tmp_path)
    made.go(0, 1)
    kept.save(1, made.model, made.optimizer, {})
    expected = made.model.get_parameter("heads.masked-lm.bias").detach().clone()
    made.go(1, 2)
    how(kept.save(2, made.model, made.optimizer, {}) / name)
    restored = kept.restore(made.model, made.optimizer)
    assert restored is not None and restored.step == 1
    assert len(restored.damaged) == 1 and "step-00000002" in restored.damaged[0]
    assert torch.equal(made.model.get_parameter("heads.masked-lm.bias"), expected)
    kept.save(2, made.model, made.optimizer, {})  # in the place of the damaged one
    again = kept.restore(made.model, made.optimizer)
    assert again is not None and (again.step, again.damaged) == (2, ())


def test_a_damaged_one_does_not_take_the_place_of_a_whole_one(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    made, kept = trainee(), Checkpoints(tmp_path, keep=2)
    made.go(0, 1)
    for step in (200, 400):
        kept.save(step, made.model, made.optimizer, {})
    flip(kept.path(400) / WEIGHTS)
    assert kept.restore(made.model, made.optimizer) is not None
    kept.save(250, made.model, made.optimizer, {})
    assert kept.steps() == [200, 250]


def test_where_all_are_damaged_nothing_is_begun_silently(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    made, kept = trainee(), Checkpoints(tmp_path)
    made.go(0, 1)
    flip(kept.save(1, made.model, made.optimizer, {}) / WEIGHTS)
    with pytest.raises(FolderError, match="every checkpoint is damaged"):
        kept.restore(made.model, made.optimizer)


def test_a_failed_write_leaves_the_one_before(
    trainee: Callable[..., Trainee], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, kept = trainee(), Checkpoints(tmp_path)
    made.go(0, 1)
    kept.save(1, made.model, made.optimizer, {})

    def full(path: Path) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "sha256_of", full)
    with pytest.raises(FolderError, match=r"step-.*: the disk is full"):
        kept.save(2, made.model, made.optimizer, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_what_a_kill_left_behind_is_swept_and_never_taken(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    made, kept = trainee(), Checkpoints(tmp_path)
    made.go(0, 1)
    kept.save(1, made.model, made.optimizer, {})
    (tmp_path / ".part-00000002").mkdir()
    (tmp_path / ".part-00000002" / WEIGHTS).write_bytes(b"half")
    restored = kept.restore(made.model, made.optimizer)
    assert restored is not None and (restored.step, restored.damaged) == (1, ())
    kept.save(3, made.model, made.optimizer, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000001", "step-00000003"]


def test_a_checkpoint_of_another_model_is_refused_with_what_differs(
    trainee: Callable[..., Trainee], recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    made = trainee()
    made.go(0, 1)
    Checkpoints(tmp_path).save(1, made.model, made.optimizer, {})
    wider = Model.new(recipe(width=48))
    with pytest.raises(FolderError, match="differs between the checkpoint and the model"):
        Checkpoints(tmp_path).restore(wider, ADAMW.build(wider))


def test_the_files_are_tensors_and_json(trainee: Callable[..., Trainee], tmp_path: Path) -> None:
    made = trainee()
    made.go(0, 1)
    path = Checkpoints(tmp_path).save(1, made.model, made.optimizer, {"best": None})
    assert sorted(file.name for file in path.iterdir()) == sorted([WEIGHTS, OPTIMIZER, STATE, SUMS])
    assert json.loads((path / STATE).read_text()) == {"step": 1, "best": None}
