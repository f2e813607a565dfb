"""Siamese encoders beside those of a peer: the same rows and choices on both sides, and what is concluded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.cell import in_order
from experiments.experiment import Setting
from experiments.siamese import BEFORE, OURS, PEER, SCORED, SPEED, UNLABELLED, WHITENED, cells, conclude, read_peer

from experiments import against_trainer, cosines


@pytest.fixture
def setting(data: Path) -> Setting:
    return Setting(data / "data")


def said(command: tuple[str, ...], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_both_sides_are_told_the_same(setting: Setting) -> None:
    found = [cell for cell in cells(setting) if cell.seed == 1]
    assert [(cell.name, cell.part) for cell in found] == [
        (OURS, "STS-B"),
        (PEER, "STS-B"),
        (OURS, "SimCSE"),
        (PEER, "SimCSE"),
    ]
    for ours, theirs in (found[:2], found[2:]):
        for flag in ("--base", "--epochs", "--batch", "--lr", "--max-length", "--seed"):
            assert said(ours.commands[0], flag) == said(theirs.commands[0], flag)
        assert ours.needs == theirs.needs
        assert "--dev" not in ours.commands[0], "nothing is chosen on held-out rows"


def test_our_own_model_is_used_as_it_is(setting: Setting) -> None:
    every = cells(setting)
    assert against_trainer.cells(setting)[0].digest in {cell.digest for cell in in_order(every)}
    (white,) = [cell for cell in every if cell.name == WHITENED]
    assert white.commands[0][3] == "whiten" and white.commands[0][5] == "{rows}/train.jsonl"
    assert [cell.part for cell in every if cell.name == BEFORE] == ["STS-B", "SimCSE"]


def result(name: str, speed: float, told: list[float]) -> dict[str, Any]:
    gold = [float(number) for number in range(len(told))]
    examples = {name: np.stack([gold, told], 1).tolist()}
    return {"figures": {f"{name}_{SPEED}": speed}, "examples": examples}


def test_difference_and_speed_are_concluded() -> None:
    good, bad = list(np.arange(30.0)), list(np.arange(30.0) % 7)
    rows = {OURS: [result("stsb", 300, good)], PEER: [result("stsb", 120, bad)]}
    (sentence,) = conclude(rows)
    assert sentence.startswith("STS-B: bertie beside sentence-transformers +") and "2.5 times as fast" in sentence
    assert conclude({OURS: rows[OURS]}) == []


def test_a_peers_speed_stands_beside_its_scores(tmp_path: Path) -> None:
    (tmp_path / "speed.json").write_text(json.dumps({SPEED: 12.5}))
    (tmp_path / "scores.json").write_text(json.dumps({"figures": {"stsb_spearman": 0.8}}))
    assert read_peer(tmp_path, SCORED.exercise)["figures"] == {"stsb_spearman": 0.8, f"stsb_{SPEED}": 12.5}
    assert UNLABELLED.exercise.column("examples/s", SPEED).figure == f"sentences_{SPEED}"


def test_cosines_of_a_model_that_learned_no_task(minilm: Path, tmp_path: Path) -> None:
    rows = [{"text": "a cat", "other": other} for other in ("a cat", "a kitten", "tax law")]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    cosines.main([str(minilm), "--rows", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "answers.jsonl")])
    same, near, far = (json.loads(line)["cosine"] for line in (tmp_path / "answers.jsonl").read_text().splitlines())
    assert same == pytest.approx(1.0, abs=1e-5) and same > near > far
