"""Adapters beside `peft`: ours open there and theirs here, with the same outputs and gradients, merged and not."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.parity.comparing import close, livelier
from tests.parity.test_task_heads import (
    AUTO,
    FAMILIES,
    TASKS,
    WITH_SEGMENTS,
    draw_rows,
    our_logits,
    recipe_of,
    their_logits,
)
from torch import nn

import bertie
from bertie.models.folder.adapter_folder import write_adapter
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.task_recipe import task_recipe
from bertie.models.variant import with_recipe
from bertie.nn.low_rank import Adapted, LowRankSpec, adapt, merged
from bertie.tasks.classification import Classify

peft = pytest.importorskip("peft", reason="peft is not installed")

NUM_LABELS = {"classify": 3, "tag": 3}
# XLNet's attention is made of bare parameters, which no adapter of peft is for.
ON = {"xlnet": ("up", "down")}
CASES = [(family, "classify") for family in FAMILIES] + [("bert", kind) for kind in TASKS if kind != "classify"]


def adapted(folder: Path, family: str, kind: str, **fields: Any) -> Model:
    """A base, a model over it with adapters that have learned something, and both folders."""
    recipe = recipe_of(family)
    recipe = recipe.replace(objectives=(), encoder=livelier(recipe.encoder))
    Pretrained(Model.new(recipe, seed=1)).save(folder / "base")
    model = with_recipe(bertie.load(folder / "base").model, task_recipe(recipe, TASKS[kind]), seed=2)
    adapt(model.encoder, LowRankSpec.parse({"rank": 3, "on": ON.get(family, ("query", "value")), **fields}))
    torch.manual_seed(3)
    for name, one in model.named_parameters():
        if one.requires_grad and not name.endswith(".down"):
            nn.init.normal_(one, std=0.2)
    assert write_adapter(folder / "adapter", model, {"base": str(folder / "base")}) == []
    return model.eval()


def their_base(folder: Path, kind: str) -> Any:
    labels = {"num_labels": NUM_LABELS[kind]} if kind in NUM_LABELS else {}
    return AUTO[kind].from_pretrained(folder / "base", **labels)


def inner(model: Any) -> Any:
    """The model of `transformers` that peft put its layers into."""
    return model.base_model.model


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_our_adapter_opens_there(family: str, kind: str, tmp_path: Path) -> None:
    ours, batch = adapted(tmp_path, family, kind), draw_rows(family in WITH_SEGMENTS)
    theirs = peft.PeftModel.from_pretrained(their_base(tmp_path, kind), tmp_path / "adapter").eval()
    with torch.inference_mode():
        plain = our_logits(merged(ours).double(), batch)
        found = our_logits(ours.double(), batch)
        assert float((plain - found).abs().max()) < 1e-6
        close(found, their_logits(inner(theirs.double()), batch), 1e-6)
        close(found, their_logits(theirs.float().merge_and_unload().double(), batch), 1e-6)
        back = bertie.load(tmp_path / "adapter").model.double().eval()
        close(found, our_logits(back, batch), 1e-6)


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert"])
def test_all_parts_open_there_in_single_precision(family: str, tmp_path: Path) -> None:
    on = ("query", "key", "value", "output", "up", "down")
    ours = adapted(tmp_path, family, "classify", on=on, alpha=2)
    batch = draw_rows(family in WITH_SEGMENTS)
    theirs = peft.PeftModel.from_pretrained(their_base(tmp_path, "classify"), tmp_path / "adapter").eval()
    with torch.inference_mode():
        found = our_logits(ours, batch)
        largest = max(1.0, float(found.abs().max()))
        close(found / largest, their_logits(inner(theirs), batch) / largest, 1e-6)
        close(found / largest, their_logits(theirs.merge_and_unload(), batch) / largest, 1e-6)


def test_the_folder_is_enough_for_their_own_way_of_opening(tmp_path: Path) -> None:
    ours, batch = adapted(tmp_path, "bert", "classify"), draw_rows(True)
    theirs = peft.AutoPeftModelForSequenceClassification.from_pretrained(tmp_path / "adapter", num_labels=3).eval()
    with torch.inference_mode():
        close(our_logits(ours.double(), batch), their_logits(inner(theirs.double()), batch), 1e-6)


def test_gradients_are_the_same_in_training(tmp_path: Path) -> None:
    ours, batch = adapted(tmp_path, "bert", "classify").double().train(), draw_rows(True)
    ours.heads["classify"].get_submodule("dropout").eval()
    theirs = peft.PeftModel.from_pretrained(their_base(tmp_path, "classify"), tmp_path / "adapter", is_trainable=True)
    theirs = theirs.double().train()
    inner(theirs).dropout.eval()
    our_logits(ours, batch).square().sum().backward()
    their_logits(inner(theirs), batch).square().sum().backward()
    learning = {name for name, one in theirs.named_parameters() if one.requires_grad}
    assert sum(".lora_" in name for name in learning) == sum(".updates." in name for name, _ in ours.named_parameters())
    for number, part in enumerate(one for one in ours.modules() if isinstance(one, Adapted)):
        for name in ("query", "value"):
            layer = inner(theirs).get_submodule(f"bert.encoder.layer.{number}.attention.self.{name}")
            for own, other in (("down", layer.lora_A), ("up", layer.lora_B)):
                gradient = part.updates[name].get_parameter(own).grad
                assert gradient is not None
                close(gradient, other["default"].weight.grad, 1e-9)


def test_it_begins_as_theirs_does() -> None:
    layer = LowRankSpec(rank=64).build(nn.Linear(256, 3 * 256), ("query", "key", "value"))
    config = peft.LoraConfig(r=64, lora_alpha=128, target_modules=["0"])
    theirs = peft.get_peft_model(nn.Sequential(nn.Linear(256, 256)), config)
    other = theirs.base_model.model[0]
    own = layer.updates["query"].get_parameter("down").detach()
    expected = other.lora_A["default"].weight.detach()
    assert own.shape == expected.shape
    assert float(own.std()) == pytest.approx(float(expected.std()), rel=0.02)
    assert float(own.abs().max()) == pytest.approx(float(expected.abs().max()), rel=0.02)
    assert not layer.updates["query"].get_parameter("up").any() and not other.lora_B["default"].weight.any()
    assert layer.spec.scale == other.scaling["default"]


THEIR_CONFIGS: dict[str, dict[str, Any]] = {
    "usual": {"r": 4, "lora_alpha": 16, "target_modules": ["query", "value"]},
    "patterns": {
        "r": 4,
        "target_modules": ["query", "output.dense"],
        "rank_pattern": {"layer.0.attention.self.query": 2},
        "alpha_pattern": {"output.dense": 3},
    },
    "stabilised": {"r": 4, "use_rslora": True, "target_modules": ["key"], "modules_to_save": ["pooler"]},
    "all layers": {"r": 2, "target_modules": "all-linear"},
}


@pytest.mark.parametrize("name", THEIR_CONFIGS)
def test_their_adapter_opens_here(name: str, tmp_path: Path) -> None:
    recipe = recipe_of("bert")
    recipe = recipe.replace(objectives=(), encoder=livelier(recipe.encoder))
    Pretrained(Model.new(recipe, seed=1)).save(tmp_path / "base")
    config = peft.LoraConfig(task_type="SEQ_CLS", **THEIR_CONFIGS[name])
    theirs = peft.get_peft_model(their_base(tmp_path, "classify"), config).eval()
    torch.manual_seed(0)
    for one in theirs.parameters():
        if one.requires_grad:
            nn.init.normal_(one, std=0.2)
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = bertie.load(tmp_path / "theirs")
    (task,) = loaded.recipe.objectives
    assert isinstance(task, Classify) and len(task.labels) == 3
    batch = draw_rows(True)
    with torch.inference_mode():
        close(our_logits(loaded.model.double().eval(), batch), their_logits(inner(theirs.double()), batch), 1e-6)
