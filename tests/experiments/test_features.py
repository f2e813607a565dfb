"""Frozen features beside fine-tuning: their commands, what an epoch cost, and what is concluded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.experiment import Setting
from experiments.features import EPOCH, LINEAR, ONCE, TOPS, TUNED, TUNING, cells, conclude, read_timed

from bertie.nn.feature_top import LAYER_CHOICES


def said(command: tuple[str, ...], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_every_choice_of_layers_is_a_row_beside_fine_tuning(data: Path) -> None:
    found = cells(Setting(data / "data", seeds=(7,)))
    assert [cell.name for cell in found] == [TUNED, *TOPS]
    tuned, *frozen = (cell.commands[0] for cell in found)
    assert "--features" not in tuned
    under_lstm = [said(command, "--features") for command in frozen if said(command, "--top") == "lstm"]
    assert under_lstm == list(LAYER_CHOICES)
    assert (said(frozen[-1], "--features"), said(frozen[-1], "--top")) == ("last", "linear")
    for flag in ("--base", "--train", "--dev", "--batch", "--max-length", "--seed"):
        assert len({said(command, flag) for command in (tuned, *frozen)}) == 1
    assert len({cell.digest for cell in found}) == len(found)


@pytest.mark.parametrize("stored", [True, False])
def test_an_epoch_costs_its_steps(tmp_path: Path, stored: bool) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "options.json").write_text("{}")
    (run / "summary.json").write_text(json.dumps({"evaluation": {"f1": 0.9}}))
    (tmp_path / "scores.json").write_text(json.dumps({"figures": {"conll_f1": 0.8}}))
    steps = [{"tokens": 100 * step, "seconds": 5.0 * step, "tokens_per_second": 50.0} for step in (1, 2, 3)]
    lines = [{"event": "step", "step": step + 1, **record} for step, record in enumerate(steps)]
    (run / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    if stored:
        (tmp_path / "features").mkdir()
        for name in ("train", "dev"):
            (tmp_path / "features" / f"{name}.json").write_text('{"seconds": 1.5}')
    figures = read_timed(tmp_path, replace(TUNING, epochs=3))["figures"]
    assert figures[EPOCH] == pytest.approx(2.0), "300 tokens at 50 a second in 3 epochs, without evaluations"
    assert figures.get(ONCE) == (3.0 if stored else None)
    assert (figures["conll_f1"], figures["conll_dev_f1"]) == (0.8, 0.9)


def row(dev: float, num_right: int, seconds: float) -> list[dict[str, Any]]:
    """Of 100 entities, one a sentence."""
    counts = [[number < num_right, 1, 1] for number in range(100)]
    return [{"figures": {"conll_dev_f1": dev, EPOCH: seconds}, "examples": {"conll": np.array(counts, float).tolist()}}]


def test_the_cost_is_held_against_fine_tuning_and_so_are_the_features_that_are_best_on_dev() -> None:
    rows = {TUNED: row(0.85, 85, 20.0), "sum4, BiLSTM": row(0.82, 80, 6.0), LINEAR: row(0.7, 82, 0.5)}
    cost, score = conclude(rows)
    assert cost == (
        "Under a linear top an epoch costs at most 1/20 of one of fine-tuning: 0.50 s against 20.0 s, 1/40."
    )
    assert score.startswith("The features that are best on dev, sum4, BiLSTM, against fine-tuning: -5.0 points, 95%")
    (dear, _) = conclude({**rows, LINEAR: row(0.7, 82, 1.5)})
    assert "costs MORE THAN 1/20 of one of fine-tuning" in dear
    assert conclude({}) == [] and conclude({LINEAR: row(0.7, 82, 0.5)}) == []
