"""The experiments on misspelt texts: their cells, what is read from `bertie evaluate`, and what is concluded."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from experiments.cell import in_order
from experiments.experiment import Setting
from experiments.noise_scores import result
from experiments.report import charts
from experiments.task_scores import scored
from experiments.task_sets import longest_words, write_set

from experiments import chinese, noise, spaces


@pytest.fixture
def setting(data: Path) -> Setting:
    return Setting(data / "data")


@pytest.mark.parametrize(
    ("study", "share", "begun"),
    [
        (noise.STUDIES[0], "0.3", ["--base", "{base}"]),
        (noise.STUDIES[1], "0.5", ["--tokenizer", "{base}/vocabulary"]),
        (noise.STUDIES[2], "0.3", ["--base", "{base}/run"]),
        (noise.STUDIES[3], "0.5", ["--base", "{base}"]),
    ],
)
def test_both_ways_differ_in_the_noise_alone(
    study: noise.Study, share: str, begun: list[str], setting: Setting
) -> None:
    cells = study.cells(setting)
    assert [cell.seed for cell in cells] == [seed for seed in study.seeds for _ in range(2)]
    for clean, noisy in zip(cells[::2], cells[1::2], strict=True):
        own = [word for word in noisy.commands[0] if word not in clean.commands[0]]
        assert own == ["--noise", share] and clean.commands[1] == noisy.commands[1]
        words = list(clean.commands[0])
        assert words[words.index(begun[0]) + 1] == begun[1]


def test_every_study_has_rows_of_its_own(setting: Setting) -> None:
    cells = noise.cells(setting)
    assert len({(cell.part, cell.name, cell.seed) for cell in cells}) == len(cells) == 20
    assert chinese.cells(setting)[0].digest in {cell.digest for cell in in_order(cells)}, "its model is used as it is"


def test_points_become_figures_and_a_curve() -> None:
    points = [
        {"rate": 0.0, "misspelt": 0.0, "accuracy": 0.9},
        {"rate": 0.3, "misspelt": 0.28, "accuracy": 0.7},
    ]
    found = result("sst2", "accuracy", points)
    assert found["curves"] == {"sst2": [[0, 0.9], [30, 0.7]]}
    assert found["figures"]["sst2_accuracy_30"] == 0.7 and found["figures"]["sst2_misspelt_30"] == 0.28
    made = {"cell": "clean rows: SST-2, seed 0"}
    (chart,) = charts(noise.EXPERIMENT.charts, {noise.CLEAN: [{**found, "made": made}]})
    assert chart.title == "SST-2 accuracy" and chart.lines[0].points == [(0, 0.9), (30, 0.7)]


def test_what_is_won_back_is_told() -> None:
    def rows(noisy: float) -> dict[str, list[dict[str, Any]]]:
        clean = {"sst2_accuracy_0": 0.9, "sst2_accuracy_30": 0.6}
        return {noise.CLEAN: [{"figures": clean}], noise.NOISY: [{"figures": {"sst2_accuracy_30": noisy}}]}

    (told,) = noise.conclude(rows(0.75))
    assert "from 90.0% down to 60.0%" in told and "50% of the loss is won back, at least a third." in told
    (told,) = noise.conclude(rows(0.65))
    assert "17% of the loss is won back, LESS THAN A THIRD." in told
    assert noise.conclude({}) == []
    small = noise.STUDIES[1]
    (told,) = noise.conclude({small.named(name): found for name, found in rows(0.75).items()})
    assert told.startswith("SST-2, TINY from nothing, all rows: 30% of misspelt words")


def test_spaces_are_learned_and_measured_on_different_articles(tmp_path: Path) -> None:
    file = tmp_path / "wiki.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8") as stream:
        for number in range(10):
            stream.write(json.dumps({"text": f"five words of article {number}\nshort\n" * 3}) + "\n")
    write_set("spaces", {"text": file}, 20, 5, tmp_path / "rows")
    train, test = (
        {json.loads(line)["text"][-1] for line in (tmp_path / "rows" / name).read_text().splitlines()}
        for name in ("train.jsonl", "test.jsonl")
    )
    assert test <= {"0", "5"} and train and not train & test
    (baseline, *_) = (tmp_path / "rows" / "baseline.jsonl").read_text().splitlines()
    assert json.loads(baseline)["text"].startswith("five words of article ")


def test_the_rule_takes_the_longest_known_word() -> None:
    assert longest_words("thecatsatxythe", {"the", "cat", "cats", "at"}) == "the cats at xy the"
    assert longest_words("", {"a"}) == "" and longest_words("xyz", {"a"}) == "xyz"


def test_spaces_are_scored_and_told() -> None:
    found = scored("spaces", "spaces", [{"text": "a b c"}, {"text": "de f"}], [{"text": "a bc"}, {"text": "de f"}])
    assert found["figures"] == {"spaces_f1": 0.8, "spaces_precision": 1.0, "spaces_recall": pytest.approx(2 / 3)}
    assert spaces.conclude({spaces.OURS: [{"figures": {"spaces_f1": 0.961}}]}) == ["F1 96.1% is not below 95%."]
    assert "BELOW" in spaces.conclude({spaces.OURS: [{"figures": {"spaces_f1": 0.9}}]})[0]


def test_a_new_model_over_characters_is_asked_for(setting: Setting) -> None:
    own, rule = spaces.cells(setting)
    assert "--base" not in own.commands[0] and "--recipe" in own.commands[0]
    assert rule.name == spaces.RULE and set(own.needs) == {"rows"}
