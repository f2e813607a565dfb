"""The command line: what would be done, what is done, and the experiments' commands."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click
import pytest
from experiments.cell import Cell, bertie, in_order
from experiments.experiment import Column, Experiment, Setting

from bertie.cli import app
from experiments import __main__ as command

Make = Callable[..., Cell]
OWN, TRAINED = bertie()[:3], ("pretrain", "finetune", "predict")


def given(data: Path, tmp_path: Path) -> list[str]:
    return ["--data", str(data), "--store", str(tmp_path / "store"), "--out", str(tmp_path / "reports")]


def test_the_list_and_the_plan_run_nothing(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", *given(data, tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "against_trainer: " in listed and "0 of 6 cells are finished" in listed
    assert command.main(["ablations", "--dry-run", "--minutes", "0.5", "--seeds", "7", *given(data, tmp_path)]) == 0
    plan = capsys.readouterr().out
    assert "whole-word masks, seed 7: new" in plan and "--steps 200 --seed 7" in plan
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", list(command.EXPERIMENTS))
def test_every_flag_of_an_experiment_is_one_of_its_verb(name: str, data: Path) -> None:
    cells = in_order(command.EXPERIMENTS[name].cells(Setting(data / "data")))
    lines = {line for cell in cells for line in cell.commands if line[:3] == OWN and line[3] in TRAINED}
    assert lines
    for line in lines:
        found = app.bertie.get_command(click.Context(app.bertie), line[3])
        if isinstance(found, click.Group):
            found = found.get_command(click.Context(found), line[4])
        assert found is not None
        known = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in line if word.startswith("--")} <= known


def test_an_experiment_is_run_and_told(
    data: Path,
    tmp_path: Path,
    make_cell: Make,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def cells(setting: Setting) -> list[Cell]:
        broken = replace(make_cell("broken", 1), commands=[("false",)])
        return [*(make_cell("base", seed, seed) for seed in setting.seeds_or(1, 2)), broken]

    experiment = Experiment("a trial", cells, (Column("number", "number", ".1f"),))
    monkeypatch.setitem(command.EXPERIMENTS, "trial", experiment)
    monkeypatch.setattr("benchmarks.lock.lock_file", lambda: tmp_path / "lock")
    assert command.main(["trial", *given(data, tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "| base | 1.5 ± 0.7 | 2 |" in printed.out
    assert "broken: FAILED" in printed.err
    assert "1.5 ± 0.7" in (tmp_path / "reports" / "trial.md").read_text()


def test_missing_data_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "only_one", nullcontext)  # a benchmark may be running here
    assert command.main(["chinese", *given(tmp_path / "none", tmp_path)]) == 2
    assert "BERTIE_SHARED" in capsys.readouterr().err


def test_a_name_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main([])
    assert f"name an experiment ({', '.join(command.EXPERIMENTS)})" in capsys.readouterr().err
