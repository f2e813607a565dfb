"""Adapter folders: the names of every layout, there and back over a base, and what cannot be read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import bertie
from bertie.batch import Batch, Ragged
from bertie.errors import FolderError
from bertie.models.folder.adapter_folder import BASE, CONFIG, WEIGHTS, scale_of, short_names, write_adapter
from bertie.models.folder.folder import CARD
from bertie.models.folder.placement import HEADS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import RECIPES
from bertie.models.task_recipe import task_recipe
from bertie.models.variant import with_recipe
from bertie.nn.crf import CRFSpec
from bertie.nn.low_rank import Adapted, LowRankSpec, adapt, merged
from bertie.tasks.answering import Answering
from bertie.tasks.classification import Classify
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task

TINY, VOCAB_SIZE = Size(depth=2, width=16, num_heads=2), 60
CLASSIFY = Classify(labels=("no", "so", "yes"))
QUERIES = {
    "bert": "bert.encoder.layer.1.attention.self.query",
    "roberta": "roberta.encoder.layer.1.attention.self.query",
    "albert": "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query",
    "distilbert": "distilbert.transformer.layer.0.attention.q_lin",
    "electra": "electra.encoder.layer.1.attention.self.query",
    "modernbert": "model.layers.1.attn.Wqkv",
    "xlm": "transformer.attentions.1.q_lin",
}
DOWNS = {
    "bert": "bert.encoder.layer.1.output.dense",
    "roberta": "roberta.encoder.layer.1.output.dense",
    "albert": "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output",
    "distilbert": "distilbert.transformer.layer.0.ffn.lin2",
    "electra": "electra.encoder.layer.1.output.dense",
    "modernbert": "model.layers.1.mlp.Wo",
    "xlm": "transformer.ffns.1.lin2",
    "xlnet": "transformer.layer.1.ff.layer_2",
}
SAVED = {
    "bert": ["classifier", "pooler"],
    "roberta": ["classifier"],
    "albert": ["classifier", "pooler"],
    "distilbert": ["classifier", "pre_classifier"],
    "electra": ["classifier"],
    "modernbert": ["classifier", "head"],
    "xlm": ["sequence_summary"],
    "xlnet": ["logits_proj", "sequence_summary"],
}


def save_base(folder: Path, family: str = "bert") -> Recipe:
    recipe = RECIPES[family](TINY, VOCAB_SIZE).changed({"objectives": (), "encoder.initial_std": 0.2})
    Pretrained(Model.new(recipe)).save(folder)
    return recipe


def adapted(folder: Path, family: str = "bert", *tasks: Task, **fields: Any) -> Model:
    """A base in `folder`/base, and a model over it whose adapters have learned something."""
    recipe = save_base(folder / "base", family)
    model = with_recipe(bertie.load(folder / "base").model, task_recipe(recipe, *tasks) if tasks else recipe, seed=3)
    adapt(model.encoder, LowRankSpec.parse({"rank": 3, **fields}))
    torch.manual_seed(4)
    for part in model.modules():
        if isinstance(part, Adapted):
            for update in part.updates.values():
                nn.init.normal_(update.get_parameter("up"), std=0.3)
    for name, one in model.named_parameters():
        if one.requires_grad and ".updates." not in name:
            nn.init.normal_(one, std=0.3)
    return model.eval()


def write(folder: Path, model: Model) -> list[str]:
    return write_adapter(folder / "adapter", model, {"base": str(folder / "base"), "length": 16})


def config_in(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "adapter" / CONFIG).read_text())
    return content


def states(model: Model) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    tokens = Ragged.of([torch.randint(3, VOCAB_SIZE, (length,), generator=generator) for length in (7, 1, 5)])
    with torch.inference_mode():
        found = model.encoder(Batch({"tokens": tokens})).states
        head = model.heads["classify"](model.encoder, found).flatten() if "classify" in model.heads else torch.zeros(1)
    return torch.cat([found.values.flatten(), head])


def same(loaded: Pretrained, model: Model) -> None:
    plain = dict(merged(model).named_parameters())
    for name, parameter in loaded.model.named_parameters():
        torch.testing.assert_close(parameter, plain[name], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(states(loaded.model), states(model), atol=1e-5, rtol=1e-5)


# --- every layout


@pytest.mark.parametrize("family", QUERIES)
def test_queries_and_values_have_their_names(family: str, tmp_path: Path) -> None:
    model = adapted(tmp_path, family, CLASSIFY)
    assert write(tmp_path, model) == []
    tensors = load_file(tmp_path / "adapter" / WEIGHTS)
    down, up = (tensors[f"base_model.model.{QUERIES[family]}.lora_{which}.weight"] for which in "AB")
    fused = family == "modernbert"  # whose queries, keys and values are one layer
    assert down.shape == ((6 if fused else 3), TINY.width)
    assert up.shape == ((3 if fused else 1) * TINY.width, len(down))
    config = config_in(tmp_path)
    assert config["r"] == 3 and config["lora_alpha"] == 6 and config["task_type"] == "SEQ_CLS"
    assert config["rank_pattern"] == ({"attn.Wqkv": 6} if fused else {})
    assert config["alpha_pattern"] == ({"attn.Wqkv": 12} if fused else {})
    assert config["modules_to_save"] == SAVED[family]
    assert len(config["target_modules"]) == (1 if fused else 2)
    same(bertie.load(tmp_path / "adapter"), model)


@pytest.mark.parametrize("family", DOWNS)
def test_feed_forwards_have_their_names(family: str, tmp_path: Path) -> None:
    model = adapted(tmp_path, family, CLASSIFY, on=("up", "down"))
    assert write(tmp_path, model) == []
    assert f"base_model.model.{DOWNS[family]}.lora_A.weight" in load_file(tmp_path / "adapter" / WEIGHTS)
    assert config_in(tmp_path)["modules_to_save"] == SAVED[family]
    same(bertie.load(tmp_path / "adapter"), model)


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert"])
def test_everything_can_be_adapted_at_once(family: str, tmp_path: Path) -> None:
    model = adapted(tmp_path, family, CLASSIFY, on=("query", "key", "value", "output", "up", "down"), alpha=4.5)
    assert write(tmp_path, model) == []
    assert config_in(tmp_path)["lora_alpha"] == 4.5
    same(bertie.load(tmp_path / "adapter"), model)


@pytest.mark.parametrize(("family", "on"), [("xlnet", "query"), ("xlnet", "output"), ("twoway", "value")])
def test_what_peft_has_no_names_for_is_kept_under_our_own(family: str, on: str, tmp_path: Path) -> None:
    model = adapted(tmp_path, family, CLASSIFY, on=(on, "up"))
    (note,) = write(tmp_path, model)
    assert "under bertie's own" in note
    names = load_file(tmp_path / "adapter" / WEIGHTS)
    assert all(name.startswith(("base_model.model.encoder.", "base_model.model.heads.")) for name in names)
    same(bertie.load(tmp_path / "adapter"), model)


def test_an_encoder_alone_has_no_prefix(tmp_path: Path) -> None:
    model = adapted(tmp_path)
    assert write(tmp_path, model) == []
    names = {name.removeprefix("base_model.model.").split(".")[0] for name in load_file(tmp_path / "adapter" / WEIGHTS)}
    assert names == {"encoder", "pooler"}
    assert config_in(tmp_path)["task_type"] is None
    same(bertie.load(tmp_path / "adapter"), model)
    (tmp_path / "adapter" / CARD).unlink()
    same(bertie.load(tmp_path / "adapter"), model)


def test_a_head_that_has_no_name_there_is_kept_apart(tmp_path: Path) -> None:
    tagging = Tagging(tags=("O", "B-x", "I-x"), scheme="IOB2", crf=CRFSpec())
    model = adapted(tmp_path, "bert", CLASSIFY, tagging)
    (note,) = write(tmp_path, model)
    assert "without its tag head" in note and HEADS in note
    assert {name.split(".")[1] for name in load_file(tmp_path / "adapter" / HEADS)} == {"tag"}
    same(bertie.load(tmp_path / "adapter"), model)


# --- names of targets


def test_a_short_name_is_taken_where_nothing_else_ends_like_it(tmp_path: Path) -> None:
    write(tmp_path, adapted(tmp_path, "bert", CLASSIFY))
    assert config_in(tmp_path)["target_modules"] == ["attention.self.query", "attention.self.value"]
    write(tmp_path, adapted(tmp_path / "other", "bert", CLASSIFY, on=("down",)))
    assert config_in(tmp_path)["target_modules"] == [f"bert.encoder.layer.{layer}.output.dense" for layer in (0, 1)]
    modules = ["a.0.x.y", "a.1.x.y", "a.0.z"]
    assert short_names(modules[:2], modules) == {"a.0.x.y": "x.y", "a.1.x.y": "x.y"}
    assert short_names(["a.0.y"], ["a.0.y", "b.y"]) == {"a.0.y": "a.0.y"}


def test_a_layer_may_have_an_alpha_of_its_own() -> None:
    config = {"lora_alpha": 6, "alpha_pattern": {"layer.1.query": 12}}
    assert scale_of("bert.layer.1.query", 3, config) == 4
    assert scale_of("bert.layer.11.query", 3, config) == 2
    assert scale_of("bert.layer.2.query", 4, {"lora_alpha": 6, "use_rslora": True}) == 3


# --- reading


def test_what_the_card_says_comes_back(tmp_path: Path) -> None:
    write(tmp_path, adapted(tmp_path, "bert", CLASSIFY))
    loaded = bertie.load(tmp_path / "adapter")
    assert loaded.card["length"] == 16
    (task,) = loaded.recipe.objectives
    assert isinstance(task, Classify) and task.labels == CLASSIFY.labels


@pytest.mark.parametrize("family", SAVED)
def test_without_our_card_labels_are_counted(family: str, tmp_path: Path) -> None:
    model = adapted(tmp_path, family, CLASSIFY, on=("up",))
    write(tmp_path, model)
    (tmp_path / "adapter" / CARD).unlink()
    loaded = bertie.load(tmp_path / "adapter")
    (task,) = loaded.recipe.objectives
    assert isinstance(task, Classify) and task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    same(loaded, model)


def test_labels_of_a_base_that_has_as_many_are_kept(tmp_path: Path) -> None:
    model = adapted(tmp_path, "bert", CLASSIFY)
    write(tmp_path, model)
    Pretrained(merged(model)).save(tmp_path / "base")
    (tmp_path / "adapter" / CARD).unlink()
    (task,) = bertie.load(tmp_path / "adapter").recipe.objectives
    assert isinstance(task, Classify) and task.labels == CLASSIFY.labels


def test_other_tasks_are_told_by_their_type(tmp_path: Path) -> None:
    for number, (task, type_) in enumerate(
        {Tagging(tags=("O", "B-x")): "TOKEN_CLS", Answering(): "QUESTION_ANS"}.items()
    ):
        folder = tmp_path / str(number)
        write(folder, adapted(folder, "bert", task))
        assert config_in(folder)["task_type"] == type_
        (folder / "adapter" / CARD).unlink()
        assert [one.kind for one in bertie.load(folder / "adapter").recipe.objectives] == [task.kind]


def test_a_card_is_not_believed_when_another_program_wrote_the_config(tmp_path: Path) -> None:
    write(tmp_path, adapted(tmp_path, "bert", CLASSIFY))
    config = tmp_path / "adapter" / CONFIG
    config.write_text(config.read_text() + "\n")
    (task,) = bertie.load(tmp_path / "adapter").recipe.objectives
    assert isinstance(task, Classify) and task.labels[0] == "LABEL_0"


def test_another_model_in_the_same_folder_takes_the_adapter_away(tmp_path: Path) -> None:
    model = adapted(tmp_path, "bert", CLASSIFY)
    Pretrained(merged(model)).save(tmp_path)
    write(tmp_path, model)
    Pretrained(merged(model)).save(tmp_path)
    assert not list((tmp_path / "adapter").iterdir())


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no base": (lambda config: config.update({BASE: None}), "does not name the model that it adapts"),
    "lost base": (lambda config: config.update({BASE: "/nowhere/at/all"}), "cannot be opened"),
    "another kind": (lambda config: config.update(peft_type="IA3"), "type 'IA3'"),
    "weight decomposition": (lambda config: config.update(use_dora=True), "use_dora"),
    "another beginning": (lambda config: config.update(init_lora_weights="pissa"), "init_lora_weights to 'pissa'"),
    "biases": (lambda config: config.update(bias="all"), "bias to 'all'"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_cannot_be_read_is_said(name: str, tmp_path: Path) -> None:
    write(tmp_path, adapted(tmp_path, "bert", CLASSIFY))
    edit, told = EDITS[name]
    config = config_in(tmp_path)
    edit(config)
    (tmp_path / "adapter" / CONFIG).write_text(json.dumps(config))
    with pytest.raises(FolderError, match=told):
        bertie.load(tmp_path / "adapter")


QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"
HEAD = "base_model.model.classifier.weight"
BREAKS: dict[str, tuple[Callable[[dict[str, Tensor]], Any], str]] = {
    "half an update": (lambda tensors: tensors.pop(f"{QUERY}.lora_B.weight"), "without its B"),
    "a lost head": (lambda tensors: tensors.pop(HEAD), "no tensor for heads.classify.output.weight"),
    "a strange layer": (
        lambda tensors: tensors.update({"base_model.model.x.weight": torch.ones(2)}),
        "adapts x.weight",
    ),
    "another shape": (lambda tensors: tensors.update({HEAD: torch.ones(3, 7)}), r"is \[3, 7\]"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_tensors_that_do_not_fit_are_named(name: str, tmp_path: Path) -> None:
    write(tmp_path, adapted(tmp_path, "bert", CLASSIFY))
    change, told = BREAKS[name]
    tensors = load_file(tmp_path / "adapter" / WEIGHTS)
    change(tensors)
    save_file(tensors, tmp_path / "adapter" / WEIGHTS)
    with pytest.raises(FolderError, match=told):
        bertie.load(tmp_path / "adapter")


def test_a_base_of_our_own_cannot_be_adapted_by_foreign_names(tmp_path: Path) -> None:
    write(tmp_path, adapted(tmp_path, "bert", CLASSIFY))
    save_base(tmp_path / "base", "twoway")
    (tmp_path / "adapter" / CARD).unlink()
    with pytest.raises(FolderError, match="its base is not one"):
        bertie.load(tmp_path / "adapter")
