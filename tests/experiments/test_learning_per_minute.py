"""The factors differ from the base in one thing each, and are compared after equal time."""

import json
from pathlib import Path

import pytest
from experiments.cell import in_order
from experiments.experiment import Setting
from experiments.learning_per_minute import BASE, FACTORS, OLD, at_minutes, cells, conclude, read
from experiments.old_and_new import NEW_DEFAULT
from experiments.old_and_new import conclude as compare
from experiments.variants import RECIPES

from bertie.inspection.difference import changes
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import DEFAULT, SETTINGS, modernbert
from bertie.models.recipes import RECIPES as BUILT_IN

SMALL = Size(depth=3, width=32, num_heads=2)
CHANGED = {
    "wide": {"visibility"},
    "learned-positions": {"positions", "scorer"},
    "plain-feed-forward": {"feed_forward"},
    "post-norm": {"residual", "input_normed"},
    "dropout": {"dropout"},
    "packed": {"samples"},
}


def test_every_factor_has_a_run_of_its_own_and_corpora_are_shared(data: Path) -> None:
    found = cells(Setting(data / "data"))
    assert len(FACTORS) <= 24
    assert len(found) == len({cell.digest for cell in found}) == 2 * len(FACTORS)
    assert len({cell.name for cell in found}) == len(FACTORS)
    corpora = [cell for cell in in_order(found) if cell.name.startswith("corpus of")]
    assert len(corpora) == len({factor.vocab_size for factor in FACTORS})


@pytest.mark.parametrize("name", RECIPES)
def test_a_variant_differs_in_its_part_alone(name: str) -> None:
    recipe = RECIPES[name](SMALL, 100)
    differing = [change.field for change in changes(modernbert(SMALL, 100), recipe) if change.field != "name"]
    assert differing
    for field in differing:
        assert "next_blocks" in field or CHANGED[name] & set(field.split(".")), field
    assert Model.new(recipe).recipe == recipe


def test_the_new_default_is_the_default() -> None:
    """`old_and_new` shares its run with `learning_per_minute`, which names parts and settings one by one."""
    settings, own = SETTINGS[DEFAULT], BUILT_IN[NEW_DEFAULT.recipe](SMALL, 100)
    assert (settings.rate, settings.batch_tokens) == (float(NEW_DEFAULT.rate), NEW_DEFAULT.batch_tokens)
    assert {change.field for change in changes(own, BUILT_IN[DEFAULT](SMALL, 100))} == {"tokenizer"}


def test_what_is_read(tmp_path: Path) -> None:
    points = [[1_000_000, 2.0], [2_000_000, 1.5]]
    (tmp_path / "nats.json").write_text(json.dumps({"points": points, "num_unknown": 1, "num_pieces": 100}))
    (tmp_path / "cpu_time.json").write_text(json.dumps({"microseconds": 300.0}))
    found = read(tmp_path)
    assert found["curves"]["nats"] == [[5.0, 2.0], [10.0, 1.5]]
    assert found["figures"] == {
        "nats": 1.5,
        "tokens": 2_000_000,
        "microseconds": 300.0,
        "minutes": 10.0,
        "unknown": 0.01,
    }


def result(curve: list[list[float]]) -> dict[str, object]:
    return {"figures": {"nats": curve[-1][1], "minutes": curve[-1][0]}, "curves": {"nats": curve}}


def test_cells_are_compared_after_equal_time() -> None:
    assert at_minutes([[1.0, 3.0], [4.0, 1.0]], 2.0) == pytest.approx(2.0)
    slow, base = result([[2.0, 3.0], [8.0, 1.0]]), result([[1.0, 3.0], [4.0, 2.5]])
    (told,) = conclude({BASE: [base], "slow": [slow]})
    assert told == "slow: 2.000 nats per character after 4.0 CPU minutes, the base 2.500 (-0.500)."
    assert conclude({"slow": [slow]}) == []


def test_when_the_new_defaults_are_where_the_old_ones_end() -> None:
    old, new = result([[1.0, 3.0], [9.0, 2.0]]), result([[1.0, 2.5], [3.0, 1.5]])
    (told,) = compare({OLD: [old], NEW_DEFAULT.name: [new]})
    assert "get to 2.000 in 9.0 CPU minutes; the new ones in 2.0, 0.22 of the time" in told
    (told,) = compare({OLD: [old], NEW_DEFAULT.name: [result([[1.0, 2.5]])]})
    assert told == "The new defaults do not get to 2.000."
    assert compare({OLD: [old]}) == []
