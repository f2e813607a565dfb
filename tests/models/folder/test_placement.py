"""Where tensors lie: heads that others have no name for, models within the model, and what is told when one is gone."""

import json
from pathlib import Path

import pytest
from safetensors import safe_open

from bertie.errors import FolderError
from bertie.models.folder.folder import hf_layout, open_folder, write_folder
from bertie.models.folder.placement import HEADS, place_tensors
from bertie.models.layouts import LAYOUTS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import RECIPES, albert, bert, distilbert, electra, spanbert
from bertie.models.table_extension import resized
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.sentence_order import SentenceOrder

TINY = Size(depth=2, width=16, num_heads=4)


def names_in(path: Path) -> set[str]:
    with safe_open(path, framework="pt") as file:
        return set(file.keys())


def assert_comes_back(model: Model, folder: Path) -> None:
    opened = open_folder(folder)
    assert opened.report.clean, str(opened.report)
    assert opened.model.recipe == model.recipe
    assert Pretrained(opened.model).digest == Pretrained(model).digest


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["bert", "bert-wwm", "roberta", "albert", "electra", "distilbert"])
def test_every_size_has_an_architecture_in_transformers(name: str, size: str) -> None:
    recipe = RECIPES[name](SIZES[size], 1000)
    layout, config, known = hf_layout(recipe)
    assert layout is not None
    assert config["model_type"] == name.removesuffix("-wwm")
    assert known == recipe


# Heads without a name


def test_a_head_without_a_name_is_kept_apart_and_told(tmp_path: Path) -> None:
    model = Model.new(spanbert(TINY, vocab_size=40), seed=2)
    note = write_folder(tmp_path, model, {})
    assert note is not None
    assert "without its span-boundary head" in note
    apart = names_in(tmp_path / HEADS)
    assert apart
    assert all(name.startswith("heads.span-boundary.") for name in apart)
    assert "cls.predictions.bias" in names_in(tmp_path / "model.safetensors")
    assert_comes_back(model, tmp_path)


def test_a_folder_without_its_heads_is_told(tmp_path: Path) -> None:
    write_folder(tmp_path, Model.new(spanbert(TINY, vocab_size=40)), {})
    (tmp_path / HEADS).unlink()
    with pytest.raises(FolderError, match=rf"has no {HEADS}, which its recipe needs"):
        open_folder(tmp_path)


def test_a_model_of_known_heads_leaves_no_file_of_others(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="span-boundary"):
        Pretrained(Model.new(spanbert(TINY, vocab_size=40))).save(tmp_path)
    model = Model.new(bert(TINY, vocab_size=40))
    assert Pretrained(model).save(tmp_path) == []
    assert not (tmp_path / HEADS).exists()
    assert_comes_back(model, tmp_path)


# Which architecture


def without_pooler(recipe: Recipe, *objectives: MaskedLM | NextSentence) -> Recipe:
    return recipe.changed({"encoder.pooler": None, "objectives": objectives})


@pytest.mark.parametrize(
    ("recipe", "kind", "places"),
    [
        (bert(TINY, 40), "bert", {""}),
        (bert(TINY, 40).replace(objectives=(MaskedLM(), SentenceOrder())), "bert", {"", HEADS}),
        (without_pooler(bert(TINY, 40), MaskedLM()), "bert", {""}),
        (without_pooler(bert(TINY, 40), MaskedLM()).replace(name="electra"), "electra", {""}),
        (electra(TINY, 40), "electra", {"", "generator"}),
        (distilbert(TINY, 40), "distilbert", {""}),
        (albert(TINY, 40), "albert", {""}),
    ],
)
def test_the_architecture_that_names_most_heads_is_taken(
    recipe: Recipe, kind: str, places: set[str], tmp_path: Path
) -> None:
    """Where two could take a model, its name decides."""
    model = Model.new(recipe)
    layout, config, known = hf_layout(recipe)
    assert config["model_type"] == kind
    entries, _ = place_tensors(model, layout, known)
    assert {name.rpartition("/")[0] for entry in entries for name in entry.theirs} == places
    write_folder(tmp_path, model, {})
    assert_comes_back(model, tmp_path)


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(albert(TINY, 40).changed({"encoder.stack.shared": ("mixer",)}), id="half of a layer shared"),
        pytest.param(albert(TINY, 40).changed({"encoder.embeddings.factor": None}), id="shared without a factor"),
        pytest.param(albert(TINY, 40).replace(objectives=(SentenceOrder(),)), id="order alone"),
        pytest.param(
            distilbert(TINY, 40).replace(objectives=(MaskedLM(), *distilbert(TINY, 40).objectives)),
            id="two heads for one name",
        ),
    ],
)
def test_what_no_architecture_is_keeps_our_names(recipe: Recipe, tmp_path: Path) -> None:
    model = Model.new(recipe)
    assert hf_layout(recipe)[0] is None
    note = write_folder(tmp_path, model, {})
    assert note is not None
    assert "transformers has no such model" in note
    assert names_in(tmp_path / "model.safetensors") == set(dict(model.named_parameters()))
    assert_comes_back(model, tmp_path)


def test_pairs_are_judged_there_from_a_pooler_alone() -> None:
    recipe = without_pooler(bert(TINY, 40), NextSentence())
    assert LAYOUTS["bert"].config(recipe) is None
    assert LAYOUTS["bert"].config(bert(TINY, 40).replace(objectives=(NextSentence(),))) is not None


# Models within the model


def test_a_generator_that_transformers_has_not_is_kept_apart_with_its_head(tmp_path: Path) -> None:
    recipe = electra(TINY, 40)
    (objective,) = recipe.objectives
    odd = objective.changed({"generator.stack.block.feed_forward.activation": "tanh"})
    model = Model.new(recipe.replace(objectives=(odd,)))
    note = write_folder(tmp_path, model, {})
    assert note is not None
    assert "without its replaced-tokens head" in note
    assert not (tmp_path / "generator").exists()
    assert_comes_back(model, tmp_path)


def test_a_folder_without_its_generator_is_told(tmp_path: Path) -> None:
    write_folder(tmp_path, Model.new(electra(TINY, vocab_size=40)), {})
    (tmp_path / "generator/model.safetensors").unlink()
    with pytest.raises(FolderError, match="generator: has no weights"):
        open_folder(tmp_path)


def test_a_discriminator_that_another_program_took_over_is_read_without_its_generator(tmp_path: Path) -> None:
    write_folder(tmp_path, Model.new(electra(TINY, vocab_size=40)), {})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "classifier_dropout": 0.1}))
    opened = open_folder(tmp_path)
    assert opened.report.clean
    assert getattr(opened.model.recipe.objectives[0], "generator", "") is None


def test_another_model_in_its_place_leaves_no_generator(tmp_path: Path) -> None:
    Pretrained(Model.new(electra(TINY, vocab_size=40))).save(tmp_path)
    Pretrained(Model.new(bert(TINY, vocab_size=40))).save(tmp_path)
    assert not list(tmp_path.glob("generator/*"))


def test_a_generator_s_folder_tells_the_sizes_of_the_tables_that_it_shares(tmp_path: Path) -> None:
    model = Model.new(resized(electra(TINY, vocab_size=40), 45))
    write_folder(tmp_path, model, {})
    assert json.loads((tmp_path / "generator/config.json").read_text())["vocab_size"] == 45
    assert open_folder(tmp_path / "generator").report.clean
    assert_comes_back(model, tmp_path)
