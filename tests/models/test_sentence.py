"""The files of `sentence-transformers`: read, written, and refused where they ask for more than is here."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.models.sentence import (
    SentenceSettings,
    dropped_settings,
    inherit_pooling,
    learned_settings,
    load_dense,
    read_sentence_settings,
    write_sentence_settings,
)
from bertie.nn.pooling import Activation, Pooling, Projection, TokenPooling
from bertie.tasks.classification import Classify
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.siamese.siamese_head import DenseSpec

MODULES = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
FLAGS = {
    "pooling_mode_cls_token": False,
    "pooling_mode_mean_tokens": False,
    "pooling_mode_max_tokens": False,
    "pooling_mode_mean_sqrt_len_tokens": False,
    "pooling_mode_weightedmean_tokens": False,
    "pooling_mode_lasttoken": False,
    "include_prompt": True,
}


def write(folder: Path, modules: Any = None, pooling: Any = None, limits: Any = None) -> Path:
    if modules is None:
        modules = [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for index, (path, kind) in enumerate(MODULES)
        ]
    (folder / "modules.json").write_text(modules if isinstance(modules, str) else json.dumps(modules), "utf-8")
    (folder / "1_Pooling").mkdir()
    pooling = {**FLAGS, "pooling_mode_mean_tokens": True} if pooling is None else pooling
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), "utf-8")
    if limits is not None:
        text = limits if isinstance(limits, str) else json.dumps(limits)
        (folder / "sentence_bert_config.json").write_text(text, "utf-8")
    return folder


def test_a_plain_model_has_none(tmp_path: Path) -> None:
    assert read_sentence_settings(tmp_path) is None


@pytest.mark.parametrize(("flag", "tokens"), [("cls_token", "first"), ("mean_tokens", "mean"), ("max_tokens", "max")])
def test_pooling_by_flags(tmp_path: Path, flag: str, tokens: TokenPooling) -> None:
    write(tmp_path, pooling={**FLAGS, f"pooling_mode_{flag}": True}, limits={"max_seq_length": 77})
    assert read_sentence_settings(tmp_path) == SentenceSettings(Pooling(tokens=tokens, normalize=True), 77)


@pytest.mark.parametrize(("mode", "tokens"), [("cls", "first"), ("mean", "mean"), (["max"], "max")])
def test_pooling_by_name(tmp_path: Path, mode: object, tokens: TokenPooling) -> None:
    write(tmp_path, pooling={"embedding_dimension": 8, "pooling_mode": mode})
    found = read_sentence_settings(tmp_path)
    assert found is not None
    assert found.pooling.tokens == tokens
    assert found.max_length is None


def test_without_normalisation(tmp_path: Path) -> None:
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in MODULES[:2]]
    found = read_sentence_settings(write(tmp_path, modules))
    assert found is not None
    assert not found.pooling.normalize


@pytest.mark.parametrize(
    ("pooling", "told"),
    [
        ({**FLAGS, "pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, r"cls \+ max"),
        ({**FLAGS, "pooling_mode_mean_sqrt_len_tokens": True}, "mean_sqrt_len"),
        ({**FLAGS, "pooling_mode_weightedmean_tokens": True}, "weightedmean"),
        ({**FLAGS, "pooling_mode_lasttoken": True}, "lasttoken"),
        (FLAGS, "none"),
        ({"pooling_mode": "weightedmean"}, "weightedmean"),
        ({"pooling_mode": ["mean", "max"]}, r"mean \+ max"),
    ],
)
def test_a_pooling_that_is_not_here_is_named(tmp_path: Path, pooling: dict[str, Any], told: str) -> None:
    write(tmp_path, pooling=pooling)
    with pytest.raises(FolderError, match=f"1_Pooling/config.json: has the pooling {told}; supported is one of cls"):
        read_sentence_settings(tmp_path)


def test_a_module_that_is_not_here_is_named(tmp_path: Path) -> None:
    modules = [{"path": "", "type": "sentence_transformers.models.LSTM"}]
    with pytest.raises(
        FolderError, match=r"modules.json has the module LSTM, which is not supported here; supported are"
    ):
        read_sentence_settings(write(tmp_path, modules))


@pytest.mark.parametrize(
    "modules", ["{", "", '"text"', "{}", "[3]", '[{"path": ""}]', '[{"type": "a.Transformer"}]', "7"]
)
def test_broken_modules(tmp_path: Path, modules: str) -> None:
    with pytest.raises(FolderError, match=r"modules\.json"):
        read_sentence_settings(write(tmp_path, modules))


def test_modules_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_bytes(b"\xff\xfe[")
    with pytest.raises(FolderError, match=r"modules\.json"):
        read_sentence_settings(tmp_path)


@pytest.mark.parametrize("limits", ["{", "[]", {"max_seq_length": "long"}, {"max_seq_length": -5}])
def test_broken_limits(tmp_path: Path, limits: object) -> None:
    with pytest.raises(FolderError, match=r"sentence_bert_config\.json"):
        read_sentence_settings(write(tmp_path, limits=limits))


def test_a_missing_pooling_config(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "1_Pooling" / "config.json").unlink()
    with pytest.raises(FolderError, match=r"1_Pooling: has no config.json"):
        read_sentence_settings(tmp_path)


@pytest.mark.parametrize("tokens", ["first", "mean", "max"])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("max_length", [None, 64])
def test_what_is_written_is_read(tmp_path: Path, tokens: TokenPooling, normalize: bool, max_length: int | None) -> None:
    settings = SentenceSettings(Pooling(tokens=tokens, normalize=normalize), max_length)
    assert write_sentence_settings(tmp_path, settings, 8) is None
    assert read_sentence_settings(tmp_path) == settings


@pytest.mark.parametrize("layers", ["sum4", 2])
def test_layers_cannot_be_expressed_and_an_older_description_is_taken_away(tmp_path: Path, layers: Any) -> None:
    write_sentence_settings(tmp_path, SentenceSettings(Pooling()), 8)
    note = write_sentence_settings(tmp_path, SentenceSettings(Pooling(layers=layers)), 8)
    assert note is not None
    assert f"cannot pool {layers} layers" in note
    assert read_sentence_settings(tmp_path) is None


def test_lower_casing_of_its_own_is_not_overlooked(tmp_path: Path) -> None:
    """The library lower-cases every text where this is set: to ignore it would give other vectors."""
    write(tmp_path, limits={"max_seq_length": 10, "do_lower_case": True})
    with pytest.raises(FolderError, match="do_lower_case"):
        read_sentence_settings(tmp_path)


def test_prompts_are_put_before_every_text(tmp_path: Path, minilm: Path) -> None:
    import shutil

    import numpy as np
    from sentence_transformers import SentenceTransformer

    import bertie

    shutil.copytree(minilm, tmp_path / "model")
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "query"}
    (tmp_path / "model/config_sentence_transformers.json").write_text(json.dumps(prompts), "utf-8")
    expected = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(["a cat"])
    model = bertie.load(tmp_path / "model")
    assert np.abs(model.encode(["a cat"]) - expected).max() <= 1e-6
    model.save(tmp_path / "again")
    assert np.abs(SentenceTransformer(str(tmp_path / "again"), device="cpu").encode(["a cat"]) - expected).max() <= 1e-6


def test_a_default_prompt_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {}, "default_prompt_name": "query"}')
    with pytest.raises(FolderError, match="default prompt 'query' is not among the prompts"):
        read_sentence_settings(tmp_path)


@pytest.mark.parametrize("bias", [None, torch.arange(2.0)])
@pytest.mark.parametrize("activation", ["identity", "tanh"])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_dense_layer_is_written_and_read(tmp_path: Path, bias: Any, activation: Any, normalize: bool) -> None:
    settings = SentenceSettings(
        Pooling(normalize=normalize), 64, projection=Projection(torch.randn(2, 8), bias, activation)
    )
    assert write_sentence_settings(tmp_path, settings, 8) is None
    assert read_sentence_settings(tmp_path) == settings
    assert json.loads((tmp_path / "2_Dense" / "config.json").read_text())["out_features"] == 2
    assert (tmp_path / "3_Normalize").exists() == normalize


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"activation_function": "torch.nn.modules.activation.GELU"}, "has the activation GELU"),
        ({"activation_function": None}, "has the activation None"),
        ({"use_residual": True}, "takes more than the pooled vector"),
        ({"module_input_name": "token_embeddings"}, "takes more than the pooled vector"),
        ({"bias": True}, "lacks the weights of a dense layer"),
    ],
)
def test_a_dense_layer_that_is_not_here_is_named(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    write_sentence_settings(tmp_path, SentenceSettings(Pooling(), projection=Projection(torch.randn(2, 8))), 8)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FolderError, match=told):
        read_sentence_settings(tmp_path)


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (("Transformer", "Pooling", "Normalize", "Dense"), "has the order Transformer, Pooling, Normalize, Dense"),
        (("Transformer", "Pooling", "Dense", "Dense"), "Dense occurs twice"),
    ],
)
def test_modules_in_another_order_would_compute_something_else(
    tmp_path: Path, kinds: tuple[str, ...], told: str
) -> None:
    modules = [{"path": f"{index}_{kind}", "type": f"a.{kind}"} for index, kind in enumerate(kinds)]
    with pytest.raises(FolderError, match=told):
        read_sentence_settings(write(tmp_path, modules))


def test_who_learned_to_be_compared_has_settings() -> None:
    plain = bert(Size(depth=2, width=8, num_heads=2), vocab_size=9)
    assert learned_settings(Model.new(plain), 77) is None
    learned = plain.replace(objectives=(Siamese(pooling="max"),))
    assert learned_settings(Model.new(learned), 77) == SentenceSettings(Pooling(tokens="max", normalize=True), 77)


def test_a_siamese_task_goes_on_with_the_pooling_of_its_folder() -> None:
    first = SentenceSettings(Pooling(tokens="first"))
    assert inherit_pooling(Siamese(), first, 8) == Siamese(pooling="first")
    assert inherit_pooling(Siamese(pooling="max"), first, 8) == Siamese(pooling="max")
    assert inherit_pooling(Classify(), first, 8) == Classify()


@pytest.mark.parametrize("bias", [None, torch.tensor([1.0, -2.0])])
@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_a_siamese_task_goes_on_with_the_dense_layer_of_its_folder(
    bias: torch.Tensor | None, activation: Activation
) -> None:
    settings = SentenceSettings(Pooling(), 77, projection=Projection(torch.randn(2, 8), bias, activation))
    task = inherit_pooling(Siamese(), settings, 8)
    assert isinstance(task, Siamese) and task.dense == DenseSpec(size=2, bias=bias is not None, activation=activation)
    model = Model.new(bert(Size(depth=1, width=8, num_heads=2), vocab_size=9).replace(objectives=(task,)))
    load_dense(model, settings)
    learned = learned_settings(model, 77)
    assert learned is not None and learned.projection == settings.projection
    own = task.replace(dense=DenseSpec(size=3))
    model = Model.new(bert(Size(depth=1, width=8, num_heads=2), vocab_size=9).replace(objectives=(own,)))
    load_dense(model, settings)
    assert model.heads["siamese"].get_parameter("dense.weight").shape == (3, 8), "a layer of another form is new"
    other = inherit_pooling(Siamese(), settings, 16)
    assert isinstance(other, Siamese) and other.dense is None, "vectors of another width do not fit"


def test_what_a_siamese_encoder_does_not_take_over_is_told() -> None:
    dense = SentenceSettings(Pooling(), prompts={"query": "find: "}, projection=Projection(torch.randn(2, 8)))
    told = ["vectors are learned without the dense layer and the prompts of the folder"]
    assert dropped_settings(Siamese(), dense) == told and dropped_settings(Classify(), dense) == []
    with_it = dropped_settings(Siamese(dense=DenseSpec(size=2)), dense)
    assert with_it == ["vectors are learned without the prompts of the folder"]
    assert dropped_settings(Siamese(), SentenceSettings(Pooling(), prompts={"query": ""})) == []
