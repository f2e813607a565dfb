"""What is read from a run, and what is concluded from two of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from experiments.against_trainer import OURS, PEER, conclude, first_time
from experiments.pretraining import read_run

Record = dict[str, Any]


def step(number: int, tokens: int, speed: float) -> Record:
    return {"event": "step", "step": number, "tokens": tokens, "tokens_per_second": speed}


def evaluation(number: int, loss: float) -> Record:
    return {"event": "evaluation", "step": number, "masked_lm": loss, "masked_lm_accuracy": 1 / loss}


def test_minutes_are_those_of_steps_that_stand(tmp_path: Path) -> None:
    """A kill undid the second step, and evaluations and pauses take no time."""
    records = [
        *({"event": "start", "step": 0}, step(1, 6000, 100.0), evaluation(1, 9.0), {"event": "saved", "step": 1}),
        *(step(2, 60_000, 1.0), evaluation(2, 1.0)),
        *({"event": "resume", "step": 1}, step(2, 12_000, 50.0), evaluation(2, 8.0)),
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    summary = {"steps": 2, "tokens": 12_000, "evaluation": {"masked_lm": 8.0, "masked_lm_accuracy": 0.125}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    found = read_run(tmp_path)
    assert found["curves"]["masked_lm"] == [[1.0, 9.0], [3.0, 8.0]]
    assert found["figures"]["minutes"] == 3.0
    assert found["figures"]["tokens_per_second"] == pytest.approx(12_000 / 180)
    assert found["figures"]["masked_lm"] == 8.0


@pytest.mark.parametrize(
    ("goal", "time"),
    [(7.5, 1.5), (8.0, 1.0), (9.5, 1.0), (5.0, None), (6.0, 4.0)],
)
def test_when_a_curve_reaches_a_goal(goal: float, time: float | None) -> None:
    assert first_time([[1.0, 8.0], [2.0, 7.0], [3.0, 7.5], [4.0, 6.0]], goal) == time


def test_the_share_of_the_time_is_told() -> None:
    ours = {"figures": {"minutes": 40.0}, "curves": {"masked_lm": [[2.0, 7.0], [4.0, 5.0], [40.0, 3.0]]}}
    peer = {"figures": {"minutes": 20.0, "masked_lm": 5.0}, "curves": {}}
    (told,) = conclude({OURS: [ours], PEER: [peer]})
    assert "gets to 5.000 in 20.0 minutes; bertie is there after 4.0, 0.20 of the time" in told
    (told,) = conclude({OURS: [ours], PEER: [{**peer, "figures": {"minutes": 20.0, "masked_lm": 1.0}}]})
    assert "does not get there in 40.0" in told
    assert conclude({OURS: [ours]}) == []
