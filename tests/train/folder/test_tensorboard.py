"""TensorBoard: every figure once at its step, also after a kill, and no trouble without the package."""

import sys
from pathlib import Path
from typing import Any

import pytest

from bertie.train.folder.tensorboard import FOLDER, TensorBoard
from bertie.train.run_events import run_event


def step(number: int, loss: float) -> dict[str, Any]:
    return {
        "event": "step",
        "step": number,
        "loss": loss,
        "tokens_per_second": 1.0,
        "time": 1e9,
        "note": "words are no figure",
    }


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    accumulation = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulation.EventAccumulator(str(folder / FOLDER)).Reload()
    return [(event.step, event.value) for event in found.Scalars(tag)] if tag in found.Tags()["scalars"] else []


def test_figures_are_written_by_step(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)
    board.on_event(run_event({"event": "start", "step": 0}))
    board.on_event(run_event(step(1, 3.0)))
    board.on_event(run_event(step(2, float("nan"))))
    board.on_event(run_event({"event": "evaluation", "step": 2, "loss": 2.5}))
    board.close()
    assert scalars(tmp_path, "training/loss") == [(1, 3.0)]
    assert scalars(tmp_path, "held out/loss") == [(2, 2.5)]
    assert scalars(tmp_path, "training/time") == scalars(tmp_path, "training/note") == []


def test_what_a_kill_undid_is_not_there_twice(tmp_path: Path) -> None:
    killed = TensorBoard(tmp_path)
    killed.on_event(run_event({"event": "start", "step": 0}))
    for number in (1, 2):
        killed.on_event(run_event(step(number, 4.0 - number)))
    killed.on_event(run_event({"event": "saved", "step": 2}))
    for number in (3, 4):
        killed.on_event(run_event(step(number, 9.0)))
    killed.close()
    again = TensorBoard(tmp_path)
    again.on_event(run_event({"event": "damaged", "step": 2, "checkpoint": "step-00000004"}))
    again.on_event(run_event({"event": "resume", "step": 2, "exact": True}))
    for number in (3, 4, 5):
        again.on_event(run_event(step(number, 1.0)))
    again.close()
    assert scalars(tmp_path, "training/loss") == [(1, 3.0), (2, 2.0), (3, 1.0), (4, 1.0), (5, 1.0)]


def test_without_the_package_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    board = TensorBoard(tmp_path)
    board.on_event(run_event({"event": "start", "step": 0}))
    board.on_event(run_event(step(1, 3.0)))
    board.on_event(run_event({"event": "saved", "step": 1}))
    board.close()
    assert list(tmp_path.iterdir()) == []
