"""The model folder: what is read from other people's folders, what is told of those that do not fit, what is saved."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.errors import FolderError, UserError
from bertie.models.folder.folder import LoadReport, open_folder, write_folder
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.nn.heads import VocabularyHeadSpec
from bertie.objectives.masked_lm import MaskedLM

EditJson = Callable[..., None]
EditWeights = Callable[[Path, Callable[[dict[str, Tensor]], object]], None]
TINY = bert(Size(depth=2, width=16, num_heads=2), vocab_size=40)
QUERY = "bert.encoder.layer.0.attention.self.query.weight"


def states(model: Model, ids: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return model.eval().encoder(Batch({"tokens": Ragged.of([ids])})).states.values.numpy()


# Reading


def test_every_tensor_of_a_pre_training_folder_is_used(folder: Path) -> None:
    opened = open_folder(folder)
    assert opened.report == LoadReport()
    assert opened.report.clean
    assert str(opened.report) == "every tensor was used"
    assert [objective.kind for objective in opened.model.recipe.objectives] == ["masked-lm", "next-sentence"]
    assert opened.card == {}
    assert not any(parameter.is_meta for parameter in opened.model.parameters())


def test_a_folder_opens_without_torch_s_compiler(folder: Path) -> None:
    """Its import takes two seconds."""
    code = f"import sys, bertie; bertie.load({str(folder)!r}); sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("class_name", "heads", "pooler"),
    [
        ("BertModel", [], True),
        ("BertForMaskedLM", ["masked-lm"], False),
        ("BertForNextSentencePrediction", ["next-sentence"], True),
        ("BertForPreTraining", ["masked-lm", "next-sentence"], True),
        ("BertForSequenceClassification", ["classify"], True),
        ("BertForTokenClassification", ["tag"], False),
    ],
)
def test_heads_are_told_by_the_tensors(
    tmp_path: Path, make_hf: Callable[..., Any], class_name: str, heads: list[str], pooler: bool
) -> None:
    make_hf(tmp_path, class_name)
    opened = open_folder(tmp_path)
    assert list(opened.model.heads) == heads
    assert (opened.model.encoder.pooler is not None) == pooler
    assert opened.report.clean


def test_tensors_of_no_use_are_reported_and_the_rest_is_read(
    tmp_path: Path, make_hf: Callable[..., Any], edit_json: EditJson
) -> None:
    make_hf(tmp_path, "BertForSequenceClassification")
    edit_json(tmp_path / "config.json", architectures=["BertForSomethingOfTheirOwn"])
    report = open_folder(tmp_path).report
    assert report.unused == ("classifier.bias", "classifier.weight")
    assert not report.clean
    assert str(report) == "2 unused: classifier.bias, classifier.weight"


def test_names_are_reported_in_the_file_s_own_spelling(
    tmp_path: Path, make_hf: Callable[..., Any], edit_weights: EditWeights
) -> None:
    make_hf(tmp_path, "BertModel")
    edit_weights(tmp_path, lambda tensors: tensors.update({"pooler.extra": torch.zeros(1)}))
    assert open_folder(tmp_path).report.unused == ("pooler.extra",)


def test_missing_tensors_are_named(folder: Path, edit_weights: EditWeights) -> None:
    edit_weights(folder, lambda tensors: tensors.pop(QUERY))
    with pytest.raises(FolderError, match=f"the weights do not fit the model .1 missing: {QUERY}"):
        open_folder(folder)


def test_many_missing_tensors_are_counted(folder: Path, edit_weights: EditWeights) -> None:
    def drop(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if ".layer.1." in name]:
            tensors.pop(name)

    edit_weights(folder, drop)
    with pytest.raises(FolderError, match=r"16 missing: .*, \.\.\."):
        open_folder(folder)


def test_tensors_of_another_shape_are_named_with_both_shapes(folder: Path, edit_json: EditJson) -> None:
    edit_json(folder / "config.json", vocab_size=11)
    with pytest.raises(FolderError, match=r"word_embeddings.weight is \[74, 32\], the model needs \[11, 32\]"):
        open_folder(folder)


@pytest.mark.parametrize("name", [QUERY, QUERY.replace("weight", "bias"), "bert.pooler.dense.weight"])
def test_a_tensor_of_too_few_axes_is_named(folder: Path, edit_weights: EditWeights, name: str) -> None:
    edit_weights(folder, lambda tensors: tensors.update({name: torch.tensor(1.0)}))
    with pytest.raises(FolderError, match=f"1 of another shape: {name} is"):
        open_folder(folder)


def test_wrong_shapes_that_add_up_to_the_right_one_are_still_wrong(folder: Path, edit_weights: EditWeights) -> None:
    shapes = {QUERY: torch.zeros(40, 32), QUERY.replace("query", "key"): torch.zeros(24, 32)}
    edit_weights(folder, lambda tensors: tensors.update(shapes))
    with pytest.raises(FolderError, match="of another shape"):
        open_folder(folder)


def test_tensors_of_whole_numbers_are_refused(folder: Path, edit_weights: EditWeights) -> None:
    edit_weights(folder, lambda tensors: tensors.update({"bert.pooler.dense.bias": torch.zeros(32, dtype=torch.int64)}))
    with pytest.raises(FolderError, match=r"bert\.pooler\.dense\.bias"):
        open_folder(folder)


@pytest.mark.parametrize("class_name", ["BertModel", "BertForPreTraining"])
def test_the_prefix_may_be_there_or_not(
    tmp_path: Path, make_hf: Callable[..., Any], edit_weights: EditWeights, class_name: str
) -> None:
    make_hf(tmp_path, class_name)
    expected = states(open_folder(tmp_path).model, [2, 7, 9, 3])

    def turn(tensors: dict[str, Tensor]) -> None:
        renamed = {
            name.removeprefix("bert.")
            if name.startswith("bert.")
            else name
            if "cls." in name
            else f"bert.{name}": tensor
            for name, tensor in tensors.items()
        }
        tensors.clear()
        tensors.update(renamed)

    edit_weights(tmp_path, turn)
    opened = open_folder(tmp_path)
    assert opened.report.clean
    np.testing.assert_array_equal(states(opened.model, [2, 7, 9, 3]), expected)


def test_one_tensor_under_two_spellings_is_not_dropped_unsaid(
    tmp_path: Path, make_hf: Callable[..., Any], edit_weights: EditWeights
) -> None:
    """A file may hold both `embeddings.x` and `bert.embeddings.x`: one of them is not used."""
    make_hf(tmp_path, "BertModel")
    name = "embeddings.LayerNorm.weight"
    edit_weights(tmp_path, lambda tensors: tensors.update({f"bert.{name}": torch.zeros(32)}))
    try:
        report = open_folder(tmp_path).report
    except FolderError as error:
        assert name in str(error)
    else:
        assert [unused for unused in report.unused if unused.endswith(name)]


def test_old_spellings_of_norms(folder: Path, edit_weights: EditWeights) -> None:
    expected = states(open_folder(folder).model, [2, 7, 9, 3])

    def age(tensors: dict[str, Tensor]) -> None:
        for name in list(tensors):
            if "LayerNorm" in name:
                old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
                tensors[old] = tensors.pop(name)
        tensors["bert.embeddings.position_ids"] = torch.arange(40)[None]

    edit_weights(folder, age)
    opened = open_folder(folder)
    assert opened.report.clean
    np.testing.assert_array_equal(states(opened.model, [2, 7, 9, 3]), expected)


def test_the_oldest_configs_do_not_name_their_kind(folder: Path, edit_json: EditJson) -> None:
    edit_json(folder / "config.json", model_type=None, architectures=None)
    assert open_folder(folder).report.clean


@pytest.mark.parametrize("tied", [True, False])
def test_an_output_table_of_its_own_is_read_with_its_bias(
    tmp_path: Path, make_hf: Callable[..., Any], tied: bool
) -> None:
    theirs = make_hf(tmp_path, "BertForMaskedLM", tie_word_embeddings=tied)
    ids = [2, 7, 4, 9, 3]
    with torch.inference_mode():
        expected = theirs(input_ids=torch.tensor([ids])).logits[0]
        model = open_folder(tmp_path).model.eval()
        logits = model.heads["masked-lm"](model.encoder(Batch({"tokens": Ragged.of([ids])})).states.values)
    assert ("heads.masked-lm.weight" in dict(model.named_parameters())) != tied
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("tied", [True, False])
def test_an_output_table_of_its_own_is_saved_for_transformers(tmp_path: Path, tied: bool) -> None:
    from transformers import BertForMaskedLM

    recipe = TINY.changed({"encoder.pooler": None, "objectives": (MaskedLM(head=VocabularyHeadSpec(tied=tied)),)})
    model = Model.new(recipe).eval()
    torch.nn.init.normal_(model.get_parameter("heads.masked-lm.bias"))
    write_folder(tmp_path, model, {})
    ids = [2, 7, 4, 9, 3]
    with torch.inference_mode():
        logits = model.heads["masked-lm"](model.encoder(Batch({"tokens": Ragged.of([ids])})).states.values)
        expected = BertForMaskedLM.from_pretrained(tmp_path).eval()(input_ids=torch.tensor([ids])).logits[0]
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


# Folders that cannot be read


def test_no_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(FolderError, match=r"model: has no config.json; is it a model folder\?"):
        open_folder(folder)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", ":1: is not valid JSON"),
        (b"", ":1: is not valid JSON"),
        (b"\xff\xfe{}", ": is not valid JSON"),
        (b"[1]", ": is not a JSON object"),
        (b"[" * 100_000, ": is nested too deeply"),
    ],
)
def test_broken_config(folder: Path, content: bytes, told: str) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(FolderError, match=f"config.json{told}"):
        open_folder(folder)


@pytest.mark.parametrize("kind", ["mamba", "", 7, ["bert"], {}])
def test_an_unknown_architecture_is_named_with_the_known(folder: Path, edit_json: EditJson, kind: object) -> None:
    edit_json(folder / "config.json", model_type=kind)
    with pytest.raises(FolderError, match=r"the architecture .* is not known here; known: .*\bbert, .*roberta"):
        open_folder(folder)


def test_a_config_that_says_nothing(folder: Path) -> None:
    (folder / "config.json").write_text("{}", "utf-8")
    with pytest.raises(FolderError, match="architecture"):
        open_folder(folder)


def test_a_config_with_a_value_of_the_wrong_kind(folder: Path, edit_json: EditJson) -> None:
    edit_json(folder / "config.json", model_type="xlm", emb_dim={}, n_layers=1, n_heads=1)
    with pytest.raises(FolderError, match=r"sets emb_dim to {}, which should be a whole number"):
        open_folder(folder)


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads"])
def test_a_config_without_a_size(folder: Path, edit_json: EditJson, name: str) -> None:
    edit_json(folder / "config.json", **{name: None})
    with pytest.raises(FolderError, match=f"config.json: has no '{name}'"):
        open_folder(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", "wide"),
        ("hidden_size", -1),
        ("num_attention_heads", 0),
        ("num_attention_heads", 5),
        ("num_hidden_layers", -2),
        ("hidden_dropout_prob", 1.5),
        ("layer_norm_eps", 0),
        ("vocab_size", [3]),
    ],
)
def test_a_config_with_a_value_that_cannot_work(folder: Path, edit_json: EditJson, name: str, value: object) -> None:
    edit_json(folder / "config.json", **{name: value})
    with pytest.raises(UserError) as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("activation", ["mish", None, 3, ["gelu"]])
def test_an_unsupported_activation_is_named_with_the_known(
    folder: Path, edit_json: EditJson, activation: object
) -> None:
    edit_json(folder / "config.json", hidden_act=activation)
    if activation is None:
        assert open_folder(folder).report.clean
    else:
        with pytest.raises(FolderError, match=r"config.json has the activation .*; known are gelu, "):
            open_folder(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("position_embedding_type", "relative_key"), ("is_decoder", True), ("add_cross_attention", True)],
)
def test_settings_that_would_change_the_computation_are_refused(
    folder: Path, edit_json: EditJson, name: str, value: object
) -> None:
    edit_json(folder / "config.json", **{name: value})
    with pytest.raises(FolderError, match=f"sets {name} to {value!r}, which is not supported here"):
        open_folder(folder)
