"""Attention with pruned heads: fewer heads than the width has room for, in some layers, from a model's own weights."""

from pathlib import Path

import pytest
import torch
from tests.contracts.planted import save_and_load
from torch import Tensor, nn

from bertie.batch import Batch, Pointers, Ragged
from bertie.inspection.composition import compose
from bertie.inspection.costs import forward_flops
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.attention.attention import Attention, AttentionSpec
from bertie.nn.low_rank import LowRankSpec, adapt, merged
from bertie.nn.stack import StackSpec
from bertie.objectives.masked_lm import MaskedLM

KEPT = {0: [1, 2], 1: [0, 1, 2, 3], 2: [3]}  # heads by layer
VOCAB_SIZE = 50


def whole() -> Model:
    recipe = bert(Size(depth=3, width=32, num_heads=4), VOCAB_SIZE).changed({"objectives": (MaskedLM(),)})
    return Model.new(recipe, 3).eval()


def pruned_recipe(recipe: Recipe) -> Recipe:
    stack = recipe.encoder.stack
    assert isinstance(stack, StackSpec) and isinstance(stack.block.mixer, AttentionSpec)
    head_width = stack.block.mixer.width_of_head(recipe.encoder.width)
    first, *others = [
        stack.block.changed({"mixer.num_heads": len(heads), "mixer.head_width": head_width}) for heads in KEPT.values()
    ]
    return recipe.changed({"encoder.stack.block": first, "encoder.stack.next_blocks": tuple(others)})


def attention_of(model: nn.Module, layer: int) -> Attention:
    part = model.get_submodule(f"encoder.stack.blocks.{layer}.mixer.part")
    assert isinstance(part, Attention)
    return part


def prune(model: Model) -> Model:
    """A model with the kept heads alone: their rows of the projections, their columns of the output."""
    small = Model.new(pruned_recipe(model.recipe)).eval()
    sliced = dict(model.state_dict())
    for layer, heads in KEPT.items():
        part, at = attention_of(model, layer), f"encoder.stack.blocks.{layer}.mixer.part"
        rows = torch.cat([torch.arange(part.head_width) + head * part.head_width for head in heads])
        three = (part.query, part.key, part.value)
        sliced[f"{at}.project.weight"] = torch.cat([own.weight[rows] for own in three])
        sliced[f"{at}.project.bias"] = torch.cat([own.bias[rows] for own in three if own.bias is not None])
        sliced[f"{at}.output.weight"] = part.output.weight[:, rows]
    small.load_state_dict(sliced)
    return small


def batch() -> Batch:
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randint(5, VOCAB_SIZE, (length,), generator=generator) for length in (9, 4, 9)]
    return Batch({"tokens": Ragged.of(rows)})


def states_without(model: Model, kept: dict[int, list[int]]) -> Tensor:
    """The last states, with the outputs of all other heads set to 0."""
    hooks = []
    for layer, heads in kept.items():
        lost = [head for head in range(4) if head not in heads]

        def silence(module: nn.Module, given: object, mixed: Tensor, lost: list[int] = lost) -> Tensor:
            silent = mixed.clone()
            silent[:, lost] = 0
            return silent

        hooks.append(attention_of(model, layer).scorer.register_forward_hook(silence))
    with torch.inference_mode():
        states: Tensor = model.encoder(batch()).states.values
    for hook in hooks:
        hook.remove()
    return states


def test_pruned_heads_are_heads_that_say_nothing() -> None:
    model = whole()
    small = prune(model)
    with torch.inference_mode():
        states = small.encoder(batch()).states.values
    torch.testing.assert_close(states, states_without(model, KEPT), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(states, states_without(model, {}), atol=1e-3)
    assert [attention_of(small, layer).num_heads for layer in KEPT] == [2, 4, 1]
    assert {tuple(attention_of(small, 2).key.weight.shape)} == {(8, 32)}


def test_they_are_saved_loaded_described_and_counted(tmp_path: Path) -> None:
    small = prune(whole())
    lengths = torch.tensor([1, 1, 0])
    masked = {
        "masked": Pointers(torch.tensor([2, 9]), lengths),
        "masked_targets": Ragged(torch.tensor([7, 8]), lengths),
    }
    given = batch().with_fields(masked)
    loaded = save_and_load(small, tmp_path / "pruned", Recipe, given)
    assert [attention_of(loaded, layer).num_heads for layer in KEPT] == [2, 4, 1]
    told = [part.parts[0].words for part in compose(small.recipe).parts[1].parts[1].parts]
    assert [words.partition(", dot")[0] for words in told] == [
        "attention, 2 heads of 8",
        "attention, 4 heads of 8",
        "attention, 1 head of 8",
    ]
    assert sum(forward_flops(small).per_pair.values()) * 12 == sum(forward_flops(whole()).per_pair.values()) * 7


@pytest.mark.parametrize("on", [("query", "value"), ("key", "output")])
def test_adapters_fit_pruned_heads(on: tuple[str, ...]) -> None:
    small = prune(whole())
    adapt(small.encoder, LowRankSpec.parse({"rank": 2, "on": on}), seed=1)
    torch.manual_seed(0)
    for name, parameter in small.encoder.named_parameters():
        if name.endswith(".up"):
            nn.init.normal_(parameter, std=0.3)
    with torch.inference_mode():
        adapted = small.encoder(batch()).states.values
        plain = merged(small).encoder(batch()).states.values
    torch.testing.assert_close(adapted, plain, atol=1e-5, rtol=1e-4)
