"""`bertie inspect params` as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert

Run = Callable[..., CompletedProcess[str]]


def test_params_of_base_print_both_sums(run_bertie: Run) -> None:
    printed = run_bertie("inspect", "params", "--recipe", "bert", "--size", "base").stdout
    assert "108,808,704" in printed
    assert "109,482,240" in printed
    for part in ("23,835,648", "28,311,552", "38,400", "56,623,104"):
        assert part in printed


def test_params_of_a_folder_equal_those_of_its_recipe(run_bertie: Run, tmp_path: Path) -> None:
    Pretrained(Model.new(bert(SIZES["tiny"], vocab_size=100))).save(tmp_path)
    of_folder = json.loads(run_bertie("inspect", "params", str(tmp_path), "--json").stdout)
    of_recipe = run_bertie("inspect", "params", "--recipe", "bert", "--size", "tiny", "--vocab-size", "100", "--json")
    assert of_folder == json.loads(of_recipe.stdout)
    assert of_folder["total"] == sum(of_folder["parts"].values()) + sum(of_folder["heads"].values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "brt"], "there is no recipe 'brt'; did you mean 'bert'?"),
        (["--recipe", "bert", "--size", "huge"], "there is no size 'huge'; choose from tiny, mini"),
        ([], "there is nothing to count; give a model folder, or --recipe"),
        (["folder", "--recipe", "bert"], "MODEL and --recipe cannot both be given"),
    ],
)
def test_wrong_choices(run_bertie: Run, arguments: list[str], message: str) -> None:
    done = run_bertie("inspect", "params", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
