"""Saving a model folder: what comes back, what others cannot open, what replaces what, and parts of one's own."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.errors import FolderError, SpecError, UserError
from bertie.models.folder.folder import LoadReport, hf_layout, open_folder, write_folder
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feed_forward import Dense, DenseSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.residual import PreNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.visibility import Causal
from bertie.objectives.masked_lm import MaskedLM

EditJson = Callable[..., None]
TINY = bert(Size(depth=2, width=16, num_heads=2), vocab_size=40)


def states(model: Model, ids: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return model.eval().encoder(Batch({"tokens": Ragged.of([ids])})).states.values.numpy()


def with_block(**changes: Any) -> Recipe:
    return TINY.changed({f"encoder.stack.block.{name}": value for name, value in changes.items()})


def test_saved_and_opened_is_the_same(tmp_path: Path) -> None:
    model = Model.new(TINY, seed=5)
    assert write_folder(tmp_path / "a" / "b", model, {"metrics": {"loss": 1.5}}) is None
    opened = open_folder(tmp_path / "a" / "b")
    assert opened.report.clean
    assert opened.model.recipe == TINY
    assert opened.card["metrics"] == {"loss": 1.5}
    for (name, ours), (other, theirs) in zip(model.named_parameters(), opened.model.named_parameters(), strict=True):
        assert name == other
        assert ours.equal(theirs)
    assert opened.model.heads["masked-lm"].weight is opened.model.encoder.embeddings.tables["tokens"].weight


def test_what_a_config_cannot_say_is_kept_beside_it(tmp_path: Path) -> None:
    recipe = TINY.replace(name="mine", objectives=(MaskedLM(rate=0.4), TINY.objectives[1]))
    assert write_folder(tmp_path, Model.new(recipe), {}) is None
    assert open_folder(tmp_path).model.recipe == recipe


def test_a_config_that_another_program_changed_is_the_truth(tmp_path: Path, edit_json: EditJson) -> None:
    recipe = TINY.replace(name="mine", objectives=(MaskedLM(rate=0.4), TINY.objectives[1]))
    write_folder(tmp_path, Model.new(recipe), {"metrics": 1})
    edit_json(tmp_path / "config.json", hidden_act="relu")
    opened = open_folder(tmp_path)
    assert opened.card == {}
    assert opened.model.recipe.name == "bert"
    stack = opened.model.recipe.encoder.stack
    assert isinstance(stack, StackSpec) and stack.block.feed_forward is not None
    assert stack.block.feed_forward.activation == "relu"


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"recipe": 3}', '{"recipe": {"name": "x"}}'])
def test_a_broken_card_is_told(tmp_path: Path, content: str) -> None:
    write_folder(tmp_path, Model.new(TINY), {})
    card = json.loads((tmp_path / "bertie.json").read_text("utf-8"))
    if content.startswith('{"recipe"'):
        content = json.dumps({**card, **json.loads(content)})
    (tmp_path / "bertie.json").write_text(content, "utf-8")
    with pytest.raises(UserError, match=r"bertie\.json"):
        open_folder(tmp_path)


UNKNOWN_TO_OTHERS = {
    "pre-norm": lambda: with_block(residual=PreNormSpec()),
    "an activation of ours": lambda: with_block(feed_forward=DenseSpec(inner=8, activation="tanh")),
    "no feed-forward": lambda: with_block(feed_forward=None),
    "causal": lambda: TINY.changed({"encoder.stack.visibility": Causal()}),
    "no segments": lambda: TINY.changed({"encoder.embeddings.tables": TINY.encoder.embeddings.tables[:2]}),
    "another head": lambda: TINY.replace(objectives=(MaskedLM(head=VocabularyHeadSpec(activation="relu")),)),
    "no depth and no feed-forward": lambda: TINY.changed(
        {"encoder.stack.depth": 0, "encoder.stack.block.feed_forward": None}
    ),
}


@pytest.mark.parametrize("case", UNKNOWN_TO_OTHERS)
def test_a_model_that_transformers_does_not_have_keeps_our_names_and_says_so(tmp_path: Path, case: str) -> None:
    recipe = UNKNOWN_TO_OTHERS[case]()
    assert hf_layout(recipe)[0] is None
    model = Model.new(recipe)
    note = write_folder(tmp_path, model, {})
    assert note is not None
    assert "transformers has no such model" in note
    opened = open_folder(tmp_path)
    assert opened.model.recipe == recipe
    np.testing.assert_array_equal(states(opened.model, [2, 7, 3]), states(model, [2, 7, 3]))


def test_a_folder_of_our_own_whose_config_was_touched_says_so(tmp_path: Path, edit_json: EditJson) -> None:
    write_folder(tmp_path, Model.new(with_block(residual=PreNormSpec())), {})
    edit_json(tmp_path / "config.json", note="touched")
    with pytest.raises(FolderError, match=r"config\.json.*changed|changed.*config\.json"):
        open_folder(tmp_path)


def test_saving_over_the_folder_it_came_from(tmp_path: Path) -> None:
    write_folder(tmp_path, Model.new(TINY, seed=1), {})
    model = open_folder(tmp_path).model
    write_folder(tmp_path, model, {})
    np.testing.assert_array_equal(states(open_folder(tmp_path).model, [2, 3]), states(Model.new(TINY, seed=1), [2, 3]))


def test_saving_over_another_model_leaves_nothing_of_it(tmp_path: Path, make_hf: Callable[..., Any]) -> None:
    make_hf(tmp_path, max_shard_size="20KB")
    model = Model.new(TINY)
    write_folder(tmp_path, model, {})
    opened = open_folder(tmp_path)
    assert opened.report.clean
    np.testing.assert_array_equal(states(opened.model, [2, 3]), states(model, [2, 3]))


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("text")
    with pytest.raises(FolderError, match="taken"):
        write_folder(tmp_path / "taken", Model.new(TINY), {})


# Parts of one's own


class Waved(Dense):
    """A part with a table that is computed, not learned."""

    def __init__(self, width: int, inner: int):
        super().__init__(width, inner, torch.tanh)
        self.waves: Tensor
        self.register_buffer("waves", torch.arange(width).sin(), persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        return super().forward(states) + self.waves


class WavedSpec(DenseSpec):
    def build(self, width: int) -> Waved:
        return Waved(width, self.inner)


class OwnBlock(BlockSpec):
    feed_forward: WavedSpec | None = None


class OwnStack(StackSpec):
    block: OwnBlock


class OwnEncoder(EncoderSpec):
    stack: OwnStack


class OwnRecipe(Recipe):
    encoder: OwnEncoder


def test_a_part_with_a_computed_table_is_saved_and_opened(tmp_path: Path) -> None:
    plain = with_block(residual=PreNormSpec())
    recipe = OwnRecipe.from_json(plain.to_json())
    model = Model.new(recipe)
    write_folder(tmp_path, model, {})
    opened = open_folder(tmp_path, OwnRecipe)
    assert opened.model.recipe == recipe
    np.testing.assert_array_equal(states(opened.model, [2, 7, 3]), states(model, [2, 7, 3]))


class Bag(nn.Module):
    """An encoder that has nothing in common with a stack of blocks."""

    def __init__(self, size: int):
        super().__init__()
        self.table = nn.Embedding(size, 4)


class BagSpec(EncoderSpec):
    kind: Literal["bag"] = "bag"  # type: ignore[assignment]
    size: int = 5
    width: int = 4
    embeddings: None = None  # type: ignore[assignment]
    stack: None = None  # type: ignore[assignment]

    def build(self) -> Encoder:
        return Bag(self.size)  # type: ignore[return-value]


class BagRecipe(Recipe):
    encoder: BagSpec

    @property
    def vocab_size(self) -> int:
        return self.encoder.size


def test_an_encoder_of_another_kind_is_saved_and_opened(tmp_path: Path) -> None:
    recipe = BagRecipe(name="bag", encoder=BagSpec())
    model = Model.new(recipe)
    assert write_folder(tmp_path, model, {}) is not None
    opened = open_folder(tmp_path, BagRecipe)
    assert opened.model.get_parameter("encoder.table.weight").equal(model.get_parameter("encoder.table.weight"))


def test_opening_a_model_of_one_s_own_without_its_recipe_type_is_told(tmp_path: Path) -> None:
    write_folder(tmp_path, Model.new(BagRecipe(name="bag", encoder=BagSpec())), {})
    with pytest.raises(SpecError, match=r"bertie\.json: encoder"):
        open_folder(tmp_path)


def test_the_report_tells_all_three_kinds() -> None:
    report = LoadReport(("a",), ("u", "v", "w", "x"), ("s is [1], the model needs [2]",))
    expected = "1 missing: a; 1 of another shape: s is [1], the model needs [2]; 4 unused: u, v, w, ..."
    assert str(report) == expected


def test_a_folder_may_be_moved(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", Model.new(TINY), {})
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert open_folder(tmp_path / "b").report.clean


def test_saving_into_a_folder_keeps_the_user_s_own_files(tmp_path: Path) -> None:
    mine = ["lora.safetensors", "vocab.md", "pytorch_model_notes.txt", "my_sentences.json"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    Pretrained(Model.new(TINY)).save(tmp_path)
    assert all((tmp_path / name).read_text() == "mine" for name in mine)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_weights_are_as_readable_as_the_config(tmp_path: Path) -> None:
    Pretrained(Model.new(TINY)).save(tmp_path / "model")
    modes = {(tmp_path / "model" / name).stat().st_mode for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1


@pytest.mark.parametrize("name", ["", "/proc/nowhere"])
def test_nowhere_to_save(name: str) -> None:
    with pytest.raises(FolderError):
        Pretrained(Model.new(TINY)).save(name)
