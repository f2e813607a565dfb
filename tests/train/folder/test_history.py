"""The history: figures at their step, tokens and seconds; pauses and steps undone are not in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.errors import FolderError
from bertie.train.folder.history import figure_names, read_history
from bertie.train.folder.overview import find_runs, overview


def step(number: int, seconds: float, loss: float = 1.0, tokens_per_second: float = 10.0) -> dict[str, Any]:
    place = {"step": number, "tokens": 10 * number, "seconds": seconds, "progress": number / 10}
    return {"event": "step", "loss": loss, **place, "tokens_per_second": tokens_per_second}


def test_figures_against_steps_tokens_and_time(fake_run: Callable[..., Path]) -> None:
    history = read_history(fake_run("a"))
    assert history.trained("loss")[0] == (1.0, 9.5)
    assert history.held_out("masked_lm", "steps") == [(5.0, 6.5), (10.0, 4.0)]
    assert history.held_out("masked_lm", "tokens") == [(500.0, 6.5), (1000.0, 4.0)]
    assert history.held_out("masked_lm", "time") == [(10.0, 6.5), (20.0, 4.0)]
    assert figure_names(history.steps) == ["loss", "masked_lm", "masked_lm_accuracy", "tokens_per_second"]


def test_a_pause_is_no_time_and_a_step_undone_no_step(fake_run: Callable[..., Path]) -> None:
    records = [
        {"event": "start", "step": 0},
        *(step(number, seconds=number) for number in (1, 2, 3, 4)),
        {"event": "evaluation", "step": 4, "loss": 0.1},
        {"event": "resume", "step": 2},
        step(3, seconds=3.5, loss=0.5),
        {"event": "evaluation", "step": 3, "loss": 0.2},
    ]
    history = read_history(fake_run("a", records=records))
    assert history.trained("loss", "time") == [(1.0, 1.0), (2.0, 1.0), (3.5, 0.5)]
    assert history.held_out("loss", "time") == [(3.5, 0.2)]
    assert history.num_resumed == 1
    one = overview(history)
    assert (one.step, one.steps, one.progress, one.finished) == (3, 10, 0.3, False)


def test_the_speed_is_that_of_steps_alone(fake_run: Callable[..., Path]) -> None:
    """Twenty tokens in 1 s and in 0.25 s, whatever else took its time."""
    records = [step(2, seconds=100, tokens_per_second=20.0), step(4, seconds=500, tokens_per_second=80.0)]
    assert read_history(fake_run("a", records=records)).tokens_per_second == pytest.approx(40 / 1.25)


def test_a_run_without_a_step_and_figures_that_are_none(fake_run: Callable[..., Path]) -> None:
    history = read_history(fake_run("a", records=[{"event": "start", "step": 0}]))
    assert (history.last["step"], history.tokens_per_second, history.trained("loss")) == (0, None, [])
    nan = read_history(fake_run("b", records=[step(1, 1.0, loss=float("nan")), step(2, 2.0)]))
    assert nan.trained("loss") == [(2.0, 1.0)]


def test_what_is_no_run_is_refused(tmp_path: Path, fake_run: Callable[..., Path]) -> None:
    with pytest.raises(FolderError, match="is not a run folder"):
        read_history(tmp_path)
    with pytest.raises(FolderError, match="no such folder"):
        find_runs(tmp_path / "nowhere")
    one = fake_run("one")
    assert find_runs(tmp_path) == find_runs(one) == [one]
