"""Several seeds: mean, deviation, and the best model."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bertie.errors import FolderError
from bertie.train.finetuning.seeds import best_seed, keep_best, refuse_other_models, seed_folder, seeds_from, spread


def summaries(*accuracies: float) -> dict[int, dict[str, Any]]:
    return {
        seed: {"steps": 3, "evaluation": {"accuracy": one}, "best": {"step": 3, "rank": -one}}
        for seed, one in enumerate(accuracies, start=4)
    }


def test_mean_and_deviation() -> None:
    told = spread(summaries(0.5, 0.7, 0.9))["accuracy"]
    assert math.isclose(told["mean"], 0.7) and math.isclose(told["deviation"], 0.2)
    assert math.isnan(spread(summaries(0.5))["accuracy"]["deviation"])
    assert spread({0: {"evaluation": None}}) == {}


def test_the_best_seed() -> None:
    assert best_seed(summaries(0.5, 0.9, 0.7)) == 5
    assert best_seed({3: {"best": None}, 4: {"best": None}}) == 3
    assert list(seeds_from(4, 3)) == [4, 5, 6]


def test_the_best_model_is_copied_and_all_are_told(tmp_path: Path) -> None:
    given = summaries(0.5, 0.9)
    for seed in given:
        model = seed_folder(tmp_path, seed) / "model"
        model.mkdir(parents=True)
        (model / "weights").write_text(str(seed))
    for _ in range(2):  # also over an older one
        told = keep_best(tmp_path, given)
        assert (tmp_path / "model" / "weights").read_text() == "5"
    assert told["best_seed"] == 5 and told["seeds"]["4"] == {"accuracy": 0.5}
    assert json.loads((tmp_path / "summary.json").read_text())["best_seed"] == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "seed-4", "seed-5", "summary.json"]


def test_a_model_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    refuse_other_models(tmp_path)
    (tmp_path / "model").mkdir()
    with pytest.raises(FolderError, match="not made by a run of several seeds"):
        refuse_other_models(tmp_path)
    (tmp_path / "summary.json").write_text('{"steps": 3}')  # of one run
    with pytest.raises(FolderError, match="another `out`"):
        refuse_other_models(tmp_path)
    (tmp_path / "summary.json").write_text('{"seeds": {}}')
    refuse_other_models(tmp_path)
