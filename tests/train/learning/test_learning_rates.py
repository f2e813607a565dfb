"""What learns and how fast: levels, rates, gradients that are not there, and runs that go on across an unfreezing."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bertie.batch import Batch
from bertie.data.rows import open_rows
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import RECIPES
from bertie.nn.low_rank import LowRankSpec
from bertie.nn.stack import Block
from bertie.tasks.classification import Classify
from bertie.tasks.labelled import Labelled
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit
from bertie.train.folder.checkpoint import OPTIMIZER, WEIGHTS
from bertie.train.learning.learning_rates import LearningSpec, levels_of
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.loop import take_step

Record = dict[str, Any]
SMALL = Size(depth=4, width=16, num_heads=2)
CLASSIFY = Classify(labels=("a", "b"))


def small(name: str = "bert", **changes: Any) -> Model:
    recipe = RECIPES[name](SMALL, 65)
    return Model.new(recipe.changed({"objectives": (CLASSIFY,), **changes}))


def learning_names(model: Model) -> set[str]:
    return {name for name, one in model.named_parameters() if one.requires_grad}


# --- levels


def test_levels_count_from_the_embeddings_to_the_heads() -> None:
    model = small()
    levels, depth = levels_of(model)
    assert depth == 4
    for name, parameter in model.named_parameters():
        (level,) = levels[parameter]
        if name.startswith("encoder.embeddings."):
            assert level == 0
        elif name.startswith("encoder.stack.blocks."):
            assert level == 1 + int(name.split(".")[3])
        else:
            assert name.startswith(("encoder.pooler.", "heads.")) and level == 5


def test_a_final_norm_is_of_the_last_layer() -> None:
    model = small("modernbert")
    levels, depth = levels_of(model)
    assert levels[model.get_parameter("encoder.stack.final_norm.weight")] == (depth,)


def test_layers_of_two_directions_are_of_the_same_level() -> None:
    model = small("twoway")
    levels, depth = levels_of(model)
    named = dict(model.named_parameters())
    for way in ("ahead", "back"):
        for number in range(depth):
            own = [one for name, one in named.items() if name.startswith(f"encoder.stack.{way}.blocks.{number}.")]
            assert own and all(levels[one] == (number + 1,) for one in own)


# --- freezing


@pytest.mark.parametrize(("freeze", "lowest"), [(None, 0), ("embeddings", 1), (0, 1), (3, 4), (4, 5), ("all", 5)])
def test_what_is_frozen_is_neither_the_optimizers_nor_given_gradients(
    freeze: Any, lowest: int, draw_batches: Callable[..., list[Batch]]
) -> None:
    model = small()
    learning = LearningSpec(freeze=freeze).build(model)
    levels, _ = levels_of(model)
    optimizer = AdamWSpec().build(model, learning.factor)
    kept = {id(one) for group in optimizer.param_groups for one in group["params"]}
    assert kept == {id(one) for one, own in levels.items() if own[0] >= lowest}
    passed = watched(model)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    take_step(model, labelled(draw_batches(model, [[6, 5]])), optimizer, 1.0, step=0)
    for name, one in model.named_parameters():
        learns = levels[one][0] >= lowest
        assert (one.grad is not None) == learns, name
        assert learns or torch.equal(one, before[name]), name
    # What leaves a level has a gradient to hand down only where something below it learns.
    assert passed == [level >= lowest for level in range(5)]


def watched(model: Model) -> list[bool]:
    """Whether gradients would flow through what the embeddings and each block return, in order, after a pass."""
    passed: list[bool] = []

    def see(module: nn.Module, inputs: Any, output: Any) -> None:
        passed.append((output if isinstance(output, torch.Tensor) else output[0]).requires_grad)

    blocks = [one for one in model.encoder.stack.modules() if isinstance(one, Block)]
    for part in (model.encoder.embeddings, *blocks):
        part.register_forward_hook(see)
    return passed


def labelled(batches: list[Batch]) -> list[Batch]:
    return [batch.with_fields({"label": torch.arange(batch.ragged("tokens").num_rows) % 2}) for batch in batches]


def test_what_was_frozen_before_stays_so() -> None:
    model = small()
    model.encoder.stack.requires_grad_(False)
    learning = LearningSpec(unfreeze_every=1).build(model)
    for step in range(9):
        learning.begin(step)
        assert not any(name.startswith("encoder.stack.") for name in learning_names(model))
    assert any(name.startswith("encoder.embeddings.") for name in learning_names(model))


# --- gradual unfreezing


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (LearningSpec(unfreeze_every=3), {0: 5, 2: 5, 3: 4, 5: 4, 6: 3, 12: 1, 15: 0, 99: 0}),
        (LearningSpec(unfreeze_every=3, freeze="embeddings"), {0: 5, 12: 1, 15: 1, 99: 1}),
        (LearningSpec(unfreeze_every=1, freeze=2), {0: 5, 1: 4, 2: 3, 3: 3, 99: 3}),
        (LearningSpec(freeze=2), {0: 3, 99: 3}),
    ],
)
def test_one_more_layer_from_the_top_learns_every_so_many_steps(spec: LearningSpec, expected: dict[int, int]) -> None:
    model = small()
    levels, _ = levels_of(model)
    learning = spec.build(model)
    for step, lowest in reversed(expected.items()):  # in any order: nothing is remembered
        assert learning.lowest(step) == lowest
        learning.begin(step)
        assert {one for one in levels if one.requires_grad} == {one for one, own in levels.items() if own[0] >= lowest}


# --- rates


def test_lower_layers_learn_more_slowly() -> None:
    model = small()
    learning = LearningSpec(layer_decay=0.5).build(model)
    optimizer = AdamWSpec(rate=0.8).build(model, learning.factor)
    levels, _ = levels_of(model)
    shares = {0: 1 / 16, 1: 1 / 8, 2: 1 / 4, 3: 1 / 2, 4: 1.0, 5: 1.0}
    for factor in (1.0, 0.25):
        rate = optimizer.set_rate(factor)
        assert rate == 0.8 * factor
        for group in optimizer.param_groups:
            assert {group["lr"]} == {rate * shares[levels[one][0]] for one in group["params"]}
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.01, 0.0}


def test_without_a_wish_all_learns_at_one_rate() -> None:
    model = small()
    optimizer = AdamWSpec(rate=0.8).build(model)
    assert len(optimizer.param_groups) == 2
    optimizer.set_rate(0.5)
    assert all(group["lr"] == 0.4 for group in optimizer.param_groups)


# --- what cannot be said


def test_shared_layers_cannot_learn_differently() -> None:
    for spec in (LearningSpec(freeze=2), LearningSpec(layer_decay=0.9), LearningSpec(unfreeze_every=5)):
        model = small("albert")
        with pytest.raises(SpecError, match="layer 1 and layer 4 share weights"):
            spec.build(model)
        assert all(one.requires_grad for one in model.parameters()), "refused before anything is frozen"
    for freeze in ("embeddings", "all"):
        LearningSpec.parse({"freeze": freeze}).build(small("albert"))


def test_whole_groups_of_shared_layers_can_be_frozen() -> None:
    model = small("albert", **{"encoder.stack.groups": 2})
    LearningSpec(freeze=2).build(model)
    assert {name.split(".")[3] for name in learning_names(model) if ".blocks." in name} == {"2"}
    with pytest.raises(SpecError, match="layer 3 and layer 4 share weights"):
        LearningSpec(freeze=3).build(small("albert", **{"encoder.stack.groups": 2}))


def test_more_layers_than_there_are_cannot_be_frozen() -> None:
    with pytest.raises(SpecError, match="5 layers cannot be frozen, the model has 4"):
        LearningSpec(freeze=5).build(small())


@pytest.mark.parametrize(
    "fields",
    [
        {"freeze": "all", "unfreeze_every": 3},
        {"freeze": "all", "layer_decay": 0.9},
        {"freeze": "heads"},
        {"freeze": -1},
        {"layer_decay": 1.1},
        {"layer_decay": 0},
        {"unfreeze_every": 0},
    ],
)
def test_wishes_that_make_no_sense_are_refused(fields: Record) -> None:
    with pytest.raises(SpecError):
        LearningSpec.parse(fields)


def test_how_much_learns_is_told() -> None:
    model = small()
    count = {
        level: sum(one.numel() for one, own in levels_of(model)[0].items() if own[0] >= level) for level in (0, 1, 5)
    }
    assert LearningSpec(layer_decay=0.5).build(model).describe(model) is None
    told = LearningSpec(unfreeze_every=1000).build(model)
    assert told.describe(model) == (
        f"learning {count[5]:,} of {count[0]:,} weights at first; "
        "every 1,000 steps the next layer from the top joins them"
    )
    assert told.count(model, 0) == (count[5], count[0]) and told.count(model, 5000) == (count[0], count[0])
    frozen = LearningSpec(freeze="embeddings").build(model)
    assert frozen.describe(model) == f"learning {count[1]:,} of {count[0]:,} weights ({count[1] / count[0]:.2%})"


# --- runs


@pytest.fixture
def base(tokenizer: Tokenizer, recipe: Callable[..., Recipe]) -> Pretrained:
    return Pretrained(Model.new(recipe(dropout=0.1)), tokenizer)


def go(folder: Path, base: Pretrained, file: Path, **fields: Any) -> Record:
    if not file.exists():
        rows = [{"text": f"w{5 + number % 7} w{1 + number % 2}", "label": "ab"[number % 2]} for number in range(24)]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    train = Labelled(open_rows([file]), {"text": "text", "label": "label"})
    copy = Pretrained(Model.new(base.recipe), base.tokenizer)
    assert base.tokenizer is not None
    job = PreparedTask.of(fit(Classify(), train, "refuse"), train, None, base.tokenizer, 16, "refuse")
    quick = {"optimizer": {"kind": "adamw", "rate": 3e-3}, "length": 16, "save_every": 1, "keep": 99, **fields}
    return finetune(folder, copy, [job], FinetuneOptions.of_epochs([24], 3, 8, quick)).summary


def notes_of(folder: Path) -> list[str]:
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [record["what"] for record in records if record["event"] == "note"]


@pytest.mark.parametrize("stopped", [1, 2, 3, 5])
def test_a_run_goes_on_to_the_same_bits_across_an_unfreezing(
    stopped: int, base: Pretrained, tmp_path: Path, stopped_after: Callable[[int], AbstractContextManager[None]]
) -> None:
    wish = {"learning": LearningSpec(unfreeze_every=2, layer_decay=0.7)}
    go(tmp_path / "whole", base, tmp_path / "rows.jsonl", **wish)
    with stopped_after(stopped):
        go(tmp_path / "stopped", base, tmp_path / "rows.jsonl", **wish)
    go(tmp_path / "stopped", base, tmp_path / "rows.jsonl", **wish)
    for file in ("model/model.safetensors", f"checkpoints/step-00000009/{OPTIMIZER}"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "stopped" / file).read_bytes()


def test_layers_learn_and_are_remembered_from_when_they_are_unfrozen(base: Pretrained, tmp_path: Path) -> None:
    summary = go(tmp_path / "run", base, tmp_path / "rows.jsonl", learning=LearningSpec(unfreeze_every=2))
    weights, remembered = (
        [load_file(tmp_path / f"run/checkpoints/step-{step:08}/{file}") for step in range(1, 10)]
        for file in (WEIGHTS, OPTIMIZER)
    )
    first_steps = {"heads.classify.output.weight": 0, "encoder.pooler.dense.weight": 0}
    first_steps |= {f"encoder.stack.blocks.{layer}.mixer.part.output.weight": 2 * (2 - layer) for layer in (0, 1)}
    first_steps |= {"encoder.embeddings.tables.tokens.weight": 6}
    for name, first in first_steps.items():
        for step in range(9):
            assert (f"{name}:exp_avg" in remembered[step]) == (step >= first), (name, step)
            changed = step and not torch.equal(weights[step][name], weights[step - 1][name])
            assert not step or changed == (step >= first), (name, step)
        assert remembered[-1][f"{name}:step"] == 9 - first, "its own steps are counted"
    assert summary["weights"]["learned"] == summary["weights"]["all"]
    assert any("every 2 steps the next layer" in note for note in notes_of(tmp_path / "run"))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"learning": LearningSpec(freeze=3)}, "the model has 2"),
        ({"learning": LearningSpec(unfreeze_every=9)}, "the run has 9 steps"),
        ({"learning": LearningSpec(freeze=2), "low_rank": LowRankSpec()}, "so adapters cannot learn"),
    ],
)
def test_a_wish_that_cannot_be_fulfilled_is_refused_before_the_folder_is_made(
    base: Pretrained, tmp_path: Path, fields: Record, told: str
) -> None:
    with pytest.raises(SpecError, match=told):
        go(tmp_path / "run", base, tmp_path / "rows.jsonl", **fields)
    assert not (tmp_path / "run").exists()


def test_a_run_tells_how_much_learns(base: Pretrained, tmp_path: Path) -> None:
    summary = go(tmp_path / "run", base, tmp_path / "rows.jsonl", learning=LearningSpec(freeze="all"))
    assert summary["weights"]["learned"] == 32 * 32 + 32 + 2 * 32 + 2, "pooler and head"
    (told,) = notes_of(tmp_path / "run")
    assert told.startswith("learning 1,122 of ")
    with pytest.raises(SpecError, match="`freeze` was all, now not given"):
        go(tmp_path / "run", base, tmp_path / "rows.jsonl")
