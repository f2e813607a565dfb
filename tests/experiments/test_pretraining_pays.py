"""Both sides learn from the same rows, at rates that were chosen for each, and the verdict counts intervals."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from benchmarks.labelled_sets import read_rows
from experiments.cell import Cell, in_order
from experiments.experiment import Setting
from experiments.pretraining_pays import AMOUNTS, EXERCISES, cells, conclude
from experiments.task_sets import DEV_ROWS, write_set

from experiments import best_rate


@pytest.fixture
def found(data: Path) -> list[Cell]:
    return list(cells(Setting(data / "data")))


def test_all_sets_amounts_seeds_and_sides(found: list[Cell]) -> None:
    assert len(found) == len({cell.digest for cell in found}) == 6 * 3 * 3 * 2
    rates = {cell.needs["rate"].digest: cell.needs["rate"] for cell in found}
    assert len(rates) == 6 * 3 * 2
    for cell in found:
        rate = cell.needs["rate"]
        assert rate.needs["rows"] == cell.needs["rows"]  # chosen on the same rows
        assert rate.seed != cell.seed
        assert cell.name in rate.name
    models = [cell for cell in in_order(found) if "pretrain" in cell.commands[0]]
    assert len(models) == 2


def test_the_best_rate_on_dev_is_taken(tmp_path: Path) -> None:
    for rate, accuracy in ((1e-4, 0.7), (3e-4, 0.8), (1e-3, 0.8)):
        run = tmp_path / f"{rate:g}"
        run.mkdir()
        (run / "summary.json").write_text(json.dumps({"evaluation": {"accuracy": accuracy}}))
        (run / "options.json").write_text(json.dumps({"options": {"optimizer": {"rate": rate}}}))
    runs = [str(tmp_path / name) for name in ("0.0001", "0.0003", "0.001")]
    best_rate.main([*runs, "--figure", "accuracy", "--out", str(tmp_path / "best.toml")])
    assert tomllib.loads((tmp_path / "best.toml").read_text()) == {"training": {"lr": 3e-4}}


def test_rows_to_choose_on_are_not_learned_from(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("label,review\n" + "".join(f"{number % 2},review {number}\n" for number in range(3000)))
    drawn = {}
    for rows in (100, 5000):
        write_set("chnsenticorp_with_dev", {"train": file}, rows, 5000, tmp_path / str(rows))
        drawn[rows] = {
            part: {row["text"] for row in read_rows(tmp_path / str(rows) / f"{part}.jsonl")}
            for part in ("train", "dev", "test")
        }
    few, all_ = drawn[100], drawn[5000]
    assert few["dev"] == all_["dev"] and few["test"] == all_["test"]
    assert len(few["train"]) == 100 and few["train"] < all_["train"]
    assert 0 < len(few["dev"]) <= DEV_ROWS
    assert sum(map(len, all_.values())) == len(set().union(*all_.values())) == 3000


def result(exercise: Any, right: float, num_rows: int = 400) -> dict[str, Any]:
    count = round(right * num_rows)
    rows = [[1.0]] * count + [[0.0]] * (num_rows - count)
    return {"figures": {}, "curves": {}, "examples": {exercise.set: rows}}


def test_what_is_concluded() -> None:
    exercise, amount = EXERCISES[0], AMOUNTS[0].title
    rows = {
        f"pre-trained, {amount}": [result(exercise, 0.9)] * 3,
        f"random weights, {amount}": [result(exercise, 0.5)] * 3,
    }
    told = conclude(rows)
    assert told[0].startswith(f"{exercise.title}, {amount}: worth +40.0 points")
    assert told[1] == f"{amount}: above zero on 1, below on 0 (wanted: at least 4 and 0)."
