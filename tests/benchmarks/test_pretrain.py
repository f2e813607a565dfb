"""The pre-training benchmark's own arithmetic: instances, operations, bars."""

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.contenders.instances import Instances
from benchmarks.contenders.pretrain_bertie import rows_of as own_rows
from benchmarks.contenders.pretrain_trainer import IGNORED, collate
from benchmarks.contenders.pretrain_trainer import rows_of as peer_rows
from benchmarks.figures import OURS
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
    turn_of,
)
from torch.utils.flop_counter import FlopCounterMode

from bertie.models.model import Model
from bertie.train.instances import split_rows

VOCAB_SIZE = 300


@pytest.fixture
def instances() -> Instances:
    """Four rows of 24 tokens, three masked in each."""
    rng = np.random.default_rng(0)
    return Instances(
        lengths=np.full(4, 24),
        tokens=rng.integers(5, VOCAB_SIZE, 96),
        segments=np.tile(np.repeat([0, 1], 12), 4),
        partners=np.array([0, 1, 0, 1]),
        num_masked=np.full(4, 3),
        masked=np.tile([2, 9, 20], 4),
        targets=rng.integers(5, VOCAB_SIZE, 12),
    )


def test_both_sides_read_the_same(instances: Instances, tmp_path: Path) -> None:
    instances.write(tmp_path / "rows.npz")
    rows = peer_rows(str(tmp_path / "rows.npz"))
    batch = collate(rows)
    assert batch["input_ids"].flatten().tolist() == instances.tokens.tolist()
    assert batch["next_sentence_label"].tolist() == instances.partners.tolist()
    where = batch["labels"] != IGNORED
    assert batch["labels"][where].tolist() == instances.targets.tolist()
    assert where.nonzero()[:, 1].tolist() == instances.masked.tolist()
    assert [row["masked"].tolist() for row in instances.rows()] == [[2, 9, 20]] * 4


def test_operations_are_those_that_torch_counts(instances: Instances, tmp_path: Path) -> None:
    """Training is three times the forward pass; torch counts that one, through the reference scorer."""
    recipe = recipe_of(ROWS["tiny"], VOCAB_SIZE)
    block = recipe.encoder.stack.block
    slow = block.replace(mixer=block.mixer.replace(scorer=block.mixer.scorer.replace(fused=False)))
    stack = recipe.encoder.stack.replace(block=slow)
    model = Model.new(recipe.replace(encoder=recipe.encoder.replace(stack=stack))).eval()
    instances.write(tmp_path / "rows.npz")
    (batch,) = split_rows(own_rows(str(tmp_path / "rows.npz")), 1000)
    with FlopCounterMode(display=False) as counter, torch.autocast("cpu", enabled=False):
        model.double().loss(batch)  # double: the kernels of our own, which torch does not count, step back
    assert operations_of(recipe, instances) == pytest.approx(3 * counter.get_total_flops(), rel=0.01)


def test_the_best_round_counts_and_bars_are_told(instances: Instances) -> None:
    row = ROWS["mini"]
    recipe = recipe_of(row, VOCAB_SIZE)
    turns: Turns = {
        PEER: [{"seconds": 2.0, "tokens": 1000}, {"seconds": 4.0, "tokens": 1000}],
        OURS: [{"seconds": 1.0, "tokens": 1600}, {"seconds": 1.25, "tokens": 1600}],
        PEAK: [{"flops": 1e11, "product": "a"}, {"flops": 2e11, "product": "b"}],
    }
    found = figures(row, recipe, instances, turns, {PEER: {"rows": 8}, OURS: {"rows": 32}}, {})
    assert found["ratio"] == pytest.approx(3.2)
    assert found["paired_ratio"] == pytest.approx((3.2 + 5.12) / 2)
    per_token = operations_of(recipe, instances) / len(instances.tokens)
    assert found["share_of_peak"] == pytest.approx(1600 * per_token / 2e11)
    assert [bar["holds"] for bar in found["bars"]] == [True, True]
    assert [bar["reached"] for bar in found["bars"]] == [False, False]
    machine = {"cpu": "a processor", "threads": 2}
    told = describe({"machine": machine, "instances": {"rows": 4}, "rounds": 2, "rows": {"mini": found}})
    assert "3.20" in told
    assert "bar 3.00: holds" in told


def test_everybody_has_as_many_rows_in_a_turn() -> None:
    rows = {settings["rows"] * turn_of(6, settings)["steps"] for settings in (*PEER_SETTINGS, *OUR_SETTINGS)}
    assert rows == {6 * MOST_ROWS}
