"""What a report says about its model: base, data, options and date, as far as they are known."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bertie.data.rows import open_rows
from bertie.tasks.labelled import Labelled
from bertie.train.reports.origin import Origin, origin_of

RECIPE = {"name": "bert", "encoder": {"width": 128, "stack": {"depth": 2}}}
NOW = datetime(2026, 5, 4, 13, 2, tzinfo=UTC)


def measured(folder: Path) -> Labelled:
    file = folder / "dev.tsv"
    file.write_text("sentence\tlabel\ngood\tpos\nbad\tneg\n")
    return Labelled(open_rows([file]), {"text": "sentence", "label": "label"})


def origin(model: Path, card: Mapping[str, Any], folder: Path) -> Origin:
    return origin_of(str(model), card, measured(folder), RECIPE, NOW)


def test_a_model_in_its_run_folder(tmp_path: Path) -> None:
    options = {"epochs": 3.0, "seed": 0, "noise": None, "optimizer": {"rate": 5e-5, "betas": [0.9, 0.999]}}
    data = [{"train": ["train.tsv", 1200, {"text": "text", "label": "class"}], "dev": None}]
    (tmp_path / "options.json").write_text(json.dumps({"options": options, "data": data}))
    for model in (tmp_path / "model", tmp_path):
        found = origin(model, {"base": "my-base"}, tmp_path)
        assert found.facts == {
            "model": str(model),
            "base": "my-base",
            "recipe": "bert, 2 layers of width 128",
            "measured on": f"{tmp_path}/dev.tsv, 2 rows (text is sentence)",
            "trained on": "train.tsv, 1,200 rows (label is class)",
            "date": "2026-05-04 13:02 UTC",
        }
        assert found.options == {"epochs": "3", "seed": "0", "optimizer.rate": "5e-05", "optimizer.betas": "0.9, 0.999"}


def test_a_model_without_its_run(tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text("{")
    for model in (tmp_path / "elsewhere", tmp_path):  # not there, and damaged
        found = origin(model, {}, tmp_path)
        assert (found.options, found.facts["base"]) == ({}, "not stated in the folder")
        assert "trained on" not in found.facts
    assert origin(tmp_path, {"length": 8}, tmp_path).facts["base"] == "none, it started with random weights"
