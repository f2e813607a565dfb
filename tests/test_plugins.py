"""Plugins: a file or a class adds kinds to the tables, models made of them are trained, saved and opened; and what is
refused."""

import json
from pathlib import Path
from typing import Literal

import pytest
import torch
from tests.contracts.planted import draw_batch, measure, repeats, tiny_encoder, train

import bertie
from bertie import plugins
from bertie.batch import collate
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import OBJECTIVES, SIZES, Recipe, prediction_losses
from bertie.models.recipes import RECIPES
from bertie.models.task_recipe import task_recipe
from bertie.nn.visibility import VISIBILITIES, Causal, Full, Visibility
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Objective
from bertie.spec import Spec
from bertie.tasks import TASKS, new_task
from bertie.text.tokenizers.tokenizer import load_tokenizer

FILES = Path(__file__).parent / "plugin_files"
NUM_WORDS = 12
RULE = repeats(NUM_WORDS, period=3, lengths=(8, 12))


pytestmark = pytest.mark.usefixtures("plugins_as_before")


def saved_and_loaded(model: Model, folder: Path) -> Model:
    with pytest.warns(UserWarning, match="transformers"):
        Pretrained(model).save(folder)
    loaded = bertie.load(folder).model
    assert loaded.recipe == model.recipe
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), loaded.parameters(), strict=True))
    return loaded


@pytest.mark.parametrize("path", sorted(FILES.glob("*.py")), ids=lambda path: path.stem)
def test_plugins_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60


def test_an_objective_from_a_file_is_learned_saved_and_opened(tmp_path: Path) -> None:
    assert plugins.use(FILES / "next_token.py") == ("objective next-token", "recipe next-token")
    recipe = Recipe.parse({"name": "own", "encoder": tiny_encoder(NUM_WORDS), "objectives": [{"kind": "next-token"}]})
    model = Model.new(recipe)
    assert measure(model, RULE)["next_token_accuracy"] < 0.2
    train(model, RULE, steps=250)
    assert measure(model, RULE)["next_token_accuracy"] > 0.6  # the first three words of a row cannot be known
    assert saved_and_loaded(model, tmp_path).heads["next-token"] is not None
    assert "next_token" in prediction_losses(), "its baseline is known, too"


def test_a_task_from_a_file_is_learned_saved_and_opened(tmp_path: Path) -> None:
    assert plugins.use(FILES / "stars.py") == ("task stars",)
    (tmp_path / "vocab.txt").write_text(
        "".join(f"{piece}\n" for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"))
    )
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer is not None
    task = new_task("stars")
    assert type(task) is TASKS["stars"] is OBJECTIVES["stars"]
    model = Model.new(task_recipe(Recipe(name="own", encoder=tiny_encoder(8)), task))
    rows = [{"text": "a b", "stars": 4}, {"text": "b", "stars": 1}]
    read = [task.read(row, tokenizer, 16) for row in rows]
    batch = collate([example.samples[0] for example in read])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        model.loss(batch).loss().backward()
        optimizer.step()
    loaded = saved_and_loaded(model.eval(), tmp_path / "model")
    with torch.inference_mode():
        outputs = task.outputs(loaded.heads["stars"], loaded.encoder, batch)
    answers = [task.answer(example, [output]) for example, output in zip(read, outputs, strict=True)]
    assert [answer["stars"] for answer in answers] == pytest.approx([4, 1], abs=0.2)
    assert task.score(answers, [4, 1])["closeness"] > -0.2


def test_a_visibility_from_a_file_is_saved_and_opened_also_within_others(tmp_path: Path) -> None:
    assert plugins.use(FILES / "every_other.py") == ("visibility every-other", "recipe every-other")
    own = VISIBILITIES["every-other"]()
    encoder = tiny_encoder(NUM_WORDS).changed({"stack.visibility": (own & Causal(), own)})
    recipe = Recipe(name="own", encoder=encoder, objectives=(MaskedLM(),))
    assert Recipe.from_json(recipe.to_json()) == recipe
    loaded = saved_and_loaded(Model.new(recipe), tmp_path)
    batch = draw_batch(loaded, RULE, 2, (1,))
    hidden = loaded.encoder.embeddings(batch).detach().requires_grad_()
    loaded.encoder.embeddings.register_forward_hook(lambda *_: hidden)
    states = loaded.encoder(batch).states
    (gradient,) = torch.autograd.grad(states.values[4].square().sum(), hidden)
    assert (gradient.abs().sum(-1) > 0).nonzero().flatten().tolist() == [0, 2, 4]


def test_a_family_from_a_file_is_one_of_the_recipes(tmp_path: Path) -> None:
    assert plugins.use(FILES / "narrow.py") == ("recipe narrow",)
    recipe = RECIPES["narrow"](SIZES["tiny"], 100)
    assert recipe.vocab_size == 100 and recipe.encoder.stack.depth == SIZES["tiny"].depth
    saved_and_loaded(Model.new(recipe), tmp_path)


class Own(Visibility):
    kind: Literal["own"] = "own"


def test_a_class_or_an_object_does_as_well_as_a_file() -> None:
    assert plugins.use(Own) == plugins.use(Own()) == ("visibility own",)
    assert VISIBILITIES["own"] is Own


def test_an_object_is_taken_without_being_known_but_plain_data_is_not() -> None:
    encoder = tiny_encoder(NUM_WORDS).changed({"stack.visibility": (Own(),)})
    recipe = Recipe(name="own", encoder=encoder)
    unknown = "no visibility of kind 'own' is known; it may come from a plugin: load it with `plugin`"
    with pytest.raises(SpecError, match=unknown):
        recipe.check_saves()
    plugins.use(Own)
    recipe.check_saves()


def test_a_folder_whose_kinds_are_unknown_names_the_kind_and_runs_nothing(tmp_path: Path) -> None:
    plugins.use(FILES / "next_token.py")
    recipe = Recipe.parse({"name": "own", "encoder": tiny_encoder(NUM_WORDS), "objectives": [{"kind": "next-token"}]})
    saved_and_loaded(Model.new(recipe), tmp_path)
    del OBJECTIVES["next-token"]
    known = r"bertie\.json: objectives\.0: no objective of kind 'next-token' is known; it may come from a plugin"
    with pytest.raises(SpecError, match=known):
        bertie.load(tmp_path)
    assert "next_token.py" not in (tmp_path / "bertie.json").read_text()


def test_a_file_that_is_used_again_replaces_what_it_brought(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    source = (FILES / "every_other.py").read_text()
    path.write_text(source)
    plugins.use(path)
    path.write_text(source.replace("step: int = 2", "step: int = 3"))
    assert plugins.use(str(path)) == ("visibility every-other", "recipe every-other")
    assert json.loads(VISIBILITIES["every-other"]().to_json())["step"] == 3


def test_kinds_of_others_cannot_be_taken(tmp_path: Path) -> None:
    plugins.use(FILES / "every_other.py")
    (tmp_path / "own.py").write_text((FILES / "every_other.py").read_text())
    with pytest.raises(SpecError, match="there is already a visibility 'every-other'; give yours another name"):
        plugins.use(tmp_path / "own.py")

    class Mine(Visibility):
        kind: Literal["full"] = "full"

    with pytest.raises(SpecError, match="there is already a visibility 'full'"):
        plugins.use(Mine)
    assert VISIBILITIES["full"] is Full


class Nothing(Spec):
    kind: Literal["nothing"] = "nothing"


class Nameless(Objective):
    samples: None = None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "defines no task, objective, visibility, embeddings or recipes"),
        ("from bertie.nn.visibility import Full, Visibility", "defines no task"),
        ("x = 1\ny = x / 0", r"own\.py:2: the plugin cannot be loaded: ZeroDivisionError: division by zero"),
        ("x = 1\nx +* 2", r"own\.py:2: the plugin cannot be loaded: SyntaxError"),
        ("RECIPES = {'a': 1}", r"RECIPES\['a'\] must be a function"),
        ("from bertie.models.recipes import bert\nRECIPES = {'a': bert}", "that returns a Recipe with this name"),
    ],
)
def test_a_file_that_brings_nothing_or_fails_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(SpecError, match=message):
        plugins.use(tmp_path / "own.py")


def test_other_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no such plugin file"):
        plugins.use(tmp_path / "none.py")
    (tmp_path / "own.txt").write_text("")
    with pytest.raises(SpecError, match=r"a plugin is a file that ends in \.py"):
        plugins.use(tmp_path / "own.txt")
    with pytest.raises(SpecError, match="Nothing is none of what a plugin can bring"):
        plugins.use(Nothing)
    with pytest.raises(SpecError, match="Nameless has no kind"):
        plugins.use(Nameless)
