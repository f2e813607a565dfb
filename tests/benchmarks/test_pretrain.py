"""The pre-training benchmark's own arithmetic: instances, losses of both sides, operations, bars."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from benchmarks.contenders import pretrain_bertie, pretrain_trainer
from benchmarks.contenders.instances import Instance, read_instances, write_instances
from benchmarks.contenders.pretrain_trainer import IGNORED, collate
from benchmarks.contenders.pretrain_trainer import rows_of as peer_rows
from benchmarks.figures import OURS, SAME_ENGINE
from benchmarks.pretrain import (
    MOST_ROWS,
    OUR_SETTINGS,
    PEAK,
    PEER,
    PEER_SETTINGS,
    ROWS,
    Turns,
    describe,
    figures,
    operations_of,
    recipe_of,
    recorded,
    shapes,
    turn_of,
)
from benchmarks.pretrain_instances import plain
from torch.utils.flop_counter import FlopCounterMode

from bertie.batch import Places
from bertie.data.shapes import Pairs
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.nn.attention.scoring import FusedScorer
from bertie.objectives.objective import Vocabulary
from bertie.train.instances import Corruption, sample_shape, split_rows

VOCAB_SIZE, NUM_TOKENS = 300, 24
FAMILIES = {row.family: replace(row, size="tiny") for row in ROWS.values()}
SMALL = {name: replace(row, size="tiny") for name, row in ROWS.items() if row.size in ("tiny", "mini")}


def instances_of(recipe: Recipe, lengths: tuple[int, ...] = (NUM_TOKENS,) * 4) -> list[Instance]:
    """Random tokens, masked by the recipe's objectives."""
    rng = np.random.default_rng(0)
    corrupt = Corruption(recipe.objectives, Vocabulary(VOCAB_SIZE, mask=4, special=frozenset(range(5))))
    rows = []
    for number, length in enumerate(lengths):
        tokens = rng.integers(5, VOCAB_SIZE, length)
        pair = {"segments": np.repeat([0, 1], [9, length - 9]), "partner": np.asarray(number % 2)}
        told = pair if isinstance(sample_shape(recipe, NUM_TOKENS), Pairs) else {}
        rows.append(plain(corrupt({"tokens": tokens, "words": np.arange(length), **told}, rng)))
    return rows


@pytest.fixture
def instances() -> list[Instance]:
    return instances_of(recipe_of(ROWS["tiny"], VOCAB_SIZE), (24, 20, 24, 17))


def test_rows_come_back_as_they_went(instances: list[Instance], tmp_path: Path) -> None:
    write_instances(tmp_path / "rows.npz", instances)
    for found, given in zip(read_instances(tmp_path / "rows.npz"), instances, strict=True):
        assert found.keys() == given.keys() == {"tokens", "segments", "partner", "masked", "masked_targets"}
        for name in given:
            assert found[name].tolist() == given[name].tolist()


def test_both_sides_read_the_same(instances: list[Instance], tmp_path: Path) -> None:
    write_instances(tmp_path / "rows.npz", instances)
    batch = collate(peer_rows(str(tmp_path / "rows.npz"), "next_sentence_label"), pad=7)
    real = batch["attention_mask"] == 1
    assert batch["input_ids"][real].tolist() == [token for row in instances for token in row["tokens"].tolist()]
    assert (batch["input_ids"][~real] == 7).all()
    assert batch["next_sentence_label"].tolist() == [0, 1, 0, 1]
    where = batch["labels"] != IGNORED
    assert batch["labels"][where].tolist() == [one for row in instances for one in row["masked_targets"].tolist()]
    assert where.nonzero()[:, 1].tolist() == [place for row in instances for place in row["masked"].tolist()]


@pytest.mark.parametrize("name", SMALL)
def test_both_sides_have_the_same_loss(name: str, tmp_path: Path) -> None:
    recipe = recipe_of(SMALL[name], VOCAB_SIZE)
    Pretrained(Model.new(recipe, seed=0), None).save(tmp_path / "model")
    write_instances(tmp_path / "rows.npz", instances_of(recipe, (24, 11, 17)))
    files = {"model": str(tmp_path / "model"), "instances": str(tmp_path / "rows.npz")}
    request = {**files, "options": SMALL[name].peer, "check": 3}
    losses = [contender.answer(request)["loss"] for contender in (pretrain_bertie, pretrain_trainer)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("contender", [pretrain_bertie, pretrain_trainer])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_turn_learns(family: str, contender: ModuleType, tmp_path: Path) -> None:
    """It leaves a lower loss than it found, and counts the tokens of its steps but the first."""
    if contender is pretrain_trainer:
        pytest.importorskip("accelerate", reason="the Trainer needs it")
    recipe = recipe_of(FAMILIES[family], VOCAB_SIZE)
    Pretrained(Model.new(recipe, seed=0), None).save(tmp_path / "model")
    rows = instances_of(recipe, (24, 11, 17))
    write_instances(tmp_path / "rows.npz", rows)
    request = {"model": str(tmp_path / "model"), "instances": str(tmp_path / "rows.npz")}
    before = contender.answer({**request, "check": 3})["loss"]
    turn = contender.answer({**request, "steps": 4, "settings": {"rows": 3, "micro_tokens": 1000}})
    assert turn["tokens"] == 4 * (24 + 11 + 17)
    assert turn["seconds"] > 0
    assert contender.answer({**request, "check": 3})["loss"] < before


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_are_those_that_torch_counts(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is three times the forward pass; torch counts that one, through the reference scorer."""
    monkeypatch.setattr(FusedScorer, "recognizes", lambda self, layout: False)
    recipe = recipe_of(FAMILIES[family], VOCAB_SIZE)
    model = Model.new(recipe).eval()
    rows = instances_of(recipe)
    (batch,) = split_rows([{**row, "masked": Places("tokens", row["masked"])} for row in rows], 1000)
    with FlopCounterMode(display=False) as counter, torch.autocast("cpu", enabled=False):
        model.double().loss(batch)  # double: the kernels of our own, which torch does not count, step back
    expected = 3 * counter.get_total_flops() / (4 * NUM_TOKENS)
    assert operations_of(model, rows) == pytest.approx(expected, rel=0.01)


def test_shapes_are_those_of_the_layers() -> None:
    assert shapes(Model.new(recipe_of(ROWS["tiny"], VOCAB_SIZE))) == [(128, 128), (128, 384), (128, 512), (512, 128)]


def test_the_best_round_counts_and_bars_are_told() -> None:
    turns: Turns = {
        PEER: [{"seconds": 2.0, "tokens": 1000}, {"seconds": 4.0, "tokens": 1000}],
        PEER + SAME_ENGINE: [{"seconds": 1.0, "tokens": 1000}, {"seconds": 1.0, "tokens": 1000}],
        OURS: [{"seconds": 1.0, "tokens": 2400}, {"seconds": 1.25, "tokens": 2400}],
        PEAK: [
            {"flops": 3e10, "product": "a", "default": "MKL", "engines": {"MKL": 3e10, "oneDNN": 2e10}},
            {"flops": 4e10, "product": "b", "default": "MKL", "engines": {"MKL": 3e10, "oneDNN": 4e10}},
        ],
    }
    found = figures("mini", 1e7, turns, {PEER: {"rows": 8}, OURS: {"rows": 32}}, {})
    assert found["ratio"] == pytest.approx(4.8)
    assert found["paired_ratio"] == pytest.approx((4.8 + 7.68) / 2)
    assert found["share_of_peak"] == pytest.approx(2400 * 1e7 / 4e10)
    assert [bar["holds"] for bar in found["bars"]] == [True, True]
    assert [bar["reached"] for bar in found["bars"]] == [False, False]
    machine = {"cpu": "a processor", "threads": 2}
    facts = {"bert": {"rows": 4}}
    report = {"machine": machine, "instances": facts, "rounds": 2, "rows": {"mini": found}, "foreign_load": 0.01}
    told = describe({**report, "engines": {OURS: "onednn", PEER + SAME_ENGINE: "oneDNN, 16-bit products"}})
    assert "4.80" in told
    assert "bar 4.50: holds, goal 6.00: not yet" in told
    assert "bert: 4 rows" in told
    assert "the Trainer with oneDNN, 16-bit products" in told
    ratio, share, *speeds = recorded({"mini": found})
    assert (ratio.must, ratio.goal, share.must, share.goal) == (4.5, 6.0, 0.5, 0.65)
    assert [speed.value for speed in speeds] == [500.0, 1000.0, 2400.0]


def test_everybody_has_as_many_rows_in_a_turn() -> None:
    rows = {settings["rows"] * turn_of(6, settings)["steps"] for settings in (*PEER_SETTINGS, *OUR_SETTINGS)}
    assert rows == {6 * MOST_ROWS}
