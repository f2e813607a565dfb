"""The cells of fine-tuning: their commands, what a trial makes of them, and what is concluded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments.cell import in_order
from experiments.experiment import Setting
from experiments.full_runs import NAME
from experiments.full_runs import conclude as conclude_full_runs
from experiments.made_up_tasks import OURS, RULE
from experiments.made_up_tasks import conclude as conclude_made_up
from experiments.task_cells import CONLL, SST2, Exercise, Start, minilm, own_cell, peer_cell, read_own, rows_of

from experiments import against_trainer, chinese, descendants, finetuning, pretrained_or_not


@pytest.fixture
def setting(data: Path) -> Setting:
    return Setting(data / "data")


def said(command: tuple[str, ...], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_both_sides_are_told_the_same(setting: Setting) -> None:
    rows, start = rows_of(setting, CONLL), Start(minilm())
    ours, theirs = (make("x", CONLL, rows, start, 3).commands[0] for make in (own_cell, peer_cell))
    for flag in ("--base", "--epochs", "--batch", "--lr", "--max-length", "--seed"):
        assert said(ours, flag) == said(theirs, flag)
    assert said(ours, "--train") == "{rows}/train.jsonl" and said(theirs, "--rows") == "{rows}"
    assert ours[4] == theirs[3] == "tag"
    assert "--dev" not in ours, "nothing is chosen on held-out rows"


def test_a_trial_has_fewer_rows(setting: Setting) -> None:
    assert SST2.shortened(setting) is SST2
    tried = SST2.shortened(replace(setting, minutes=0.15))
    assert (tried.num_rows, tried.num_test, tried.epochs) == (500, 100, 3)
    assert SST2.shortened(replace(setting, minutes=0.001)).num_rows == 64
    assert rows_of(setting, tried).digest != rows_of(setting, SST2).digest
    usual = CONLL.shortened(replace(setting, minutes=99))
    assert usual.num_rows == CONLL.num_rows


def test_five_seeds_and_one_of_the_longest(setting: Setting) -> None:
    cells = finetuning.cells(setting)
    by_part: dict[str, list[int | None]] = {}
    for cell in cells:
        if cell.name == finetuning.OURS:
            by_part.setdefault(cell.part, []).append(cell.seed)
    five = [0, 1, 2, 3, 4]
    assert by_part == {"SST-2": five, "CoNLL-2003": five, "STS-B": five, "MRPC": five, "SQuAD": [0]}
    assert len({cell.digest for cell in cells}) == len(cells) == 2 * 21
    prepared = [cell.title for cell in in_order(cells) if cell not in cells]
    assert sorted(prepared) == ["all-MiniLM-L6-v2", *(f"rows of {part}" for part in sorted(by_part))]


def test_models_of_other_experiments_are_used_as_they_are(setting: Setting) -> None:
    """Their digests are those of the experiments themselves: nothing is trained again."""
    needed = {cell.digest for cell in in_order(pretrained_or_not.cells(setting))}
    assert against_trainer.cells(setting)[0].digest in needed
    assert chinese.cells(setting)[0].digest in needed


def test_every_recipe_is_fine_tuned_from_its_own_run(setting: Setting) -> None:
    cells = descendants.cells(setting)
    for name in descendants.RECIPES:
        run, *tuned = [cell for cell in cells if cell.name == name]
        assert [cell.part for cell in tuned] == ["SST-2", "CoNLL-2003"]
        assert all(cell.needs["base"].digest == run.digest for cell in tuned)
        assert all(said(cell.commands[0], "--base") == "{base}/run" for cell in tuned)


def test_the_figure_of_the_chosen_model_is_read(tmp_path: Path) -> None:
    exercise = Exercise("sst2", "SST-2", "classify", "classify", 10, 1, 1.0, has_dev=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "summary.json").write_text(json.dumps({"evaluation": {"accuracy": 0.9}}))
    (tmp_path / "scores.json").write_text(json.dumps({"figures": {"sst2_accuracy": 0.8}}))
    assert read_own(tmp_path, exercise)["figures"] == {"sst2_accuracy": 0.8, "sst2_dev_accuracy": 0.9}
    assert read_own(tmp_path, replace(exercise, has_dev=False))["figures"] == {"sst2_accuracy": 0.8}


def result(figures: dict[str, float], **examples: list[list[float]]) -> dict[str, Any]:
    return {"figures": figures, "examples": examples}


def test_a_difference_is_concluded() -> None:
    good, bad = [[1.0]] * 50, [[1.0]] * 20 + [[0.0]] * 30
    ours, peer = finetuning.OURS, finetuning.PEER
    (same,) = finetuning.conclude({ours: [result({}, sst2=good)], peer: [result({}, sst2=good)]})
    assert same.startswith("SST-2: bertie is as good: +0.0 points")
    (better,) = finetuning.conclude({ours: [result({}, mrpc=good)], peer: [result({}, mrpc=bad)]})
    assert better.startswith("MRPC: bertie is better: +60.0 points")
    (worse,) = finetuning.conclude({ours: [result({}, mrpc=bad)], peer: [result({}, mrpc=good)]})
    assert "WORSE" in worse
    assert finetuning.conclude({}) == []


def test_full_runs_are_held_against_the_trainer() -> None:
    told = conclude_full_runs({NAME: [result({"sst2_accuracy": 0.8631, "conll_f1": 0.84})]})
    assert told == [
        "SST-2 accuracy: 86.3% is not below the Trainer's 86.8%.",
        "CoNLL-2003 F1: 84.0% is BELOW the Trainer's 85.3%.",
    ]


def test_simple_rules_are_beaten_or_not() -> None:
    figures = {"swapped_f1": 0.7, "swapped_always_answer": 0.3, "swapped_never_answer": 0.5}
    rows = {OURS: [result(figures, rank=[[1.0], [0.5]])], RULE: [result({}, rank=[[0.5], [0.5]])]}
    ranked, swapped = conclude_made_up(rows)
    assert ranked.startswith("answering sentence: beside the simple rule +25.0 points")
    assert "F1 70.0% beats always answering (30.0%) and never answering (50.0%)" in swapped
