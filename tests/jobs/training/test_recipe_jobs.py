"""`bertie recipes` as a user types it."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import RECIPES, albert

Run = Callable[..., CompletedProcess[str]]


def test_without_a_word_more_they_are_listed(run_bertie: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = json.loads(run_bertie("recipes", "--json").stdout)
    assert list(counts) == list(RECIPES) and list(counts["bert"]) == list(SIZES)
    assert counts["bert"]["base"] == 109_482_240
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("bertie.jobs.training.recipe_jobs.SIZES", {"tiny": SIZES["tiny"]})
    printed = run_bertie("recipes").stdout
    assert all(f" {name} " in printed for name in RECIPES)


def test_a_recipe_is_shown_by_its_difference_its_parts_and_its_fields(
    run_bertie: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    first, *lines = run_bertie("recipes", "show", "albert", "--size", "mini").stdout.splitlines()
    assert first.startswith("albert = bert ") and first.endswith("- NSP + SOP") and "+ factorised(128)" in first
    tree = [line for line in lines if line[:1] in "a├│└ "]
    assert max(map(len, tree)) <= 100
    assert any("table tokens  [30,000 x 128]  3.8M" in line for line in tree)
    assert any("mixer  attention, 4 heads of 64" in line for line in tree)
    assert "encoder.embeddings.factor: none -> 128" in lines
    assert "objectives.next-sentence: next-sentence -> none" in lines


def test_the_vocabulary_is_of_choice(run_bertie: Run) -> None:
    assert "[70 x 128]" in run_bertie("recipes", "show", "roberta", "--size", "tiny", "--vocab-size", 70).stdout


def test_a_recipe_without_a_parent(run_bertie: Run) -> None:
    first, *lines = run_bertie("recipes", "show", "bert").stdout.splitlines()
    assert first == "bert = a recipe without a parent"
    assert not any(" -> " in line and line.startswith("encoder.") for line in lines)


def test_as_json(run_bertie: Run) -> None:
    shown = json.loads(run_bertie("recipes", "show", "albert", "--size", "mini", "--json").stdout)
    assert (shown["name"], shown["parent"]) == ("albert", "bert")
    assert {"field": "encoder.embeddings.factor", "before": None, "after": 128} in shown["differences"]
    assert [part["name"] for part in shown["composition"]["parts"]] == ["tokenizer", "encoder", "objectives"]
    assert Recipe.parse(shown["recipe"]) == albert(SIZES["mini"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "allbert"], "there is no recipe 'allbert'; did you mean 'albert'?"),
        (["show", "bert", "--size", "bse"], "there is no size 'bse'; did you mean 'base'?"),
        (["shwo", "bert"], "shwo"),
    ],
)
def test_wrong_choices(run_bertie: Run, arguments: list[str], message: str) -> None:
    done = run_bertie("recipes", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
