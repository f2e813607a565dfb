"""Ways of learning less: their commands, what is read of a run, and whether adapters are near enough."""

import json
from pathlib import Path
from typing import Any

import pytest
from experiments.adapters import FULL, LORA, WAYS, cells, conclude, read
from experiments.experiment import Setting
from experiments.task_cells import SST2


def test_every_way_differs_in_flags_and_rate_alone(data: Path) -> None:
    found = {cell.name: cell for cell in cells(Setting(data / "data")) if cell.seed == 1}
    assert list(found) == list(WAYS) and len({cell.digest for cell in found.values()}) == len(WAYS)
    plain = list(found[FULL].commands[0])
    at = plain.index("--lr") + 1
    for name, way in WAYS.items():
        command = list(found[name].commands[0])
        assert float(command[at]) == way.rate
        begin = command.index("--out") - len(way.flags)
        assert tuple(command[begin : begin + len(way.flags)]) == way.flags
        del command[begin : begin + len(way.flags)]
        assert [*command[:at], *command[at + 1 :]] == [*plain[:at], *plain[at + 1 :]]
        assert found[name].needs["rows"].digest == found[FULL].needs["rows"].digest


def test_share_and_speed_are_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    summary = {"weights": {"learned": 30, "all": 1000}, "seconds": 60.0}
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "scores.json").write_text(json.dumps({"figures": {"sst2_accuracy": 0.8}}))
    assert read(tmp_path, SST2)["figures"] == {"sst2_accuracy": 0.8, "share": 0.03, "speed": 250.0}


def result(num_right: int) -> dict[str, Any]:
    return {"figures": {"share": 0.0098}, "examples": {"sst2": [[1.0]] * num_right + [[0.0]] * (1000 - num_right)}}


@pytest.mark.parametrize(("num_right", "told"), [(791, "is within 1 point of"), (789, "MORE THAN 1 POINT BELOW")])
def test_it_is_concluded_whether_adapters_are_near_enough(num_right: int, told: str) -> None:
    (sentence,) = conclude({FULL: [result(800)], LORA: [result(num_right)]})
    assert sentence.startswith("SST-2: LoRA, with 0.98% of the weights,") and told in sentence
    assert conclude({FULL: [result(800)]}) == []
