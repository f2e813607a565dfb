"""Low-rank adapters: they begin as nothing, compute what the merged weights compute, and leave all else as it was."""

from typing import Any, get_args

import pytest
import torch
from torch import nn

from bertie.batch import Batch, Ragged
from bertie.errors import SpecError
from bertie.models.recipe import Size
from bertie.models.recipes import RECIPES
from bertie.nn.attention.attention import Attention
from bertie.nn.encoder import Encoder
from bertie.nn.feed_forward import Dense
from bertie.nn.layout import Layout, Side
from bertie.nn.low_rank import Adapted, LowRankSpec, Target, adapt, is_adapted, merged

TINY, VOCAB_SIZE = Size(depth=2, width=16, num_heads=2), 40
ALL: tuple[Target, ...] = get_args(Target)
FAMILIES = [name for name in RECIPES if name != "bilstm"]


def build(name: str = "bert", seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    return RECIPES[name](TINY, VOCAB_SIZE).encoder.changed({"initial_std": 0.3}).build().eval()


def adapted(name: str = "bert", seed: int = 0, **fields: Any) -> Encoder:
    """With updates that are not 0."""
    encoder = build(name)
    adapt(encoder, LowRankSpec.parse({"rank": 3, **fields}), seed)
    torch.manual_seed(1)
    for part in parts_of(encoder):
        for update in part.updates.values():
            nn.init.normal_(update.get_parameter("up"), std=0.2)
    return encoder


def parts_of(encoder: Encoder) -> list[Adapted]:
    return [part for part in encoder.modules() if isinstance(part, Adapted)]


def rows() -> Batch:
    generator = torch.Generator().manual_seed(0)
    tokens = Ragged.of([torch.randint(3, VOCAB_SIZE, (length,), generator=generator) for length in (7, 1, 5)])
    return Batch({"tokens": tokens})


def states_of(encoder: Encoder) -> torch.Tensor:
    with torch.inference_mode():
        states: torch.Tensor = encoder(rows()).states.values
    return states


@pytest.mark.parametrize("name", FAMILIES)
def test_it_begins_as_the_base(name: str) -> None:
    encoder = build(name)
    before = states_of(encoder)
    adapt(encoder, LowRankSpec(on=ALL))
    # Where a kernel of our own does bias and activation at once, the last bits may differ.
    assert is_adapted(encoder)
    torch.testing.assert_close(states_of(encoder), before, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_merged_model_computes_the_same(name: str) -> None:
    encoder, before = adapted(name, on=ALL), states_of(build(name))
    plain = merged(encoder)
    assert not is_adapted(plain) and is_adapted(encoder)
    assert plain.state_dict().keys() == build(name).state_dict().keys()
    ours, theirs = states_of(encoder), states_of(plain)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(ours, before, atol=1e-2), "the updates change something"


def test_a_model_without_adapters_is_its_own_merged_one() -> None:
    encoder = build()
    assert merged(encoder) is encoder


def test_queries_and_values_are_adapted_and_keys_are_not() -> None:
    encoder, base = adapted(alpha=12), build()
    plain = [one for one in base.modules() if isinstance(one, Attention)]
    for part, other in zip(parts_of(encoder), plain, strict=True):
        changes = (part.weight - other.project.weight).chunk(3)
        for name, change in zip(("query", "key", "value"), changes, strict=True):
            if name == "key":
                assert not change.any()
            else:
                update = part.updates[name]
                product = 4 * update.get_parameter("up") @ update.get_parameter("down")
                torch.testing.assert_close(change, product, atol=1e-6, rtol=1e-5)


def test_two_sides_see_the_same_weights() -> None:
    """Where queries and keys come from different states, the matrix is taken apart."""
    encoder = adapted()
    attention = next(part for part in encoder.modules() if isinstance(part, Attention))
    plain = next(part for part in merged(encoder).modules() if isinstance(part, Attention))
    side = Side.of(rows())
    layout = Layout(side, side)
    query, key = torch.randn(2, 13, TINY.width)
    torch.testing.assert_close(attention(query, key, layout)[0], plain(query, key, layout)[0], atol=1e-5, rtol=1e-5)


def test_dropout_is_before_the_updates_alone() -> None:
    linear = nn.Linear(8, 8)
    part = LowRankSpec(rank=2, dropout=0.5, on=("output",)).build(linear, ("output",))
    states = torch.randn(50, 8)
    assert torch.equal(part.train()(states), linear(states)), "an update of 0 is 0 whatever is dropped"
    nn.init.ones_(part.updates["output"].get_parameter("up"))
    assert not torch.equal(part(states), part(states))
    assert torch.equal(part.eval()(states), part(states))
    torch.testing.assert_close(part(states), nn.functional.linear(states, part.weight, part.bias), atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_the_whole_matrix() -> None:
    part = parts_of(adapted())[0]
    states, toward = torch.randn(20, TINY.width), torch.randn(20, 3 * TINY.width)
    found = []
    for outputs in (part(states), nn.functional.linear(states, part.weight, part.bias)):
        part.zero_grad()
        (outputs * toward).sum().backward()
        found.append([one.grad.clone() for one in part.updates.parameters() if one.grad is not None])
    assert len(found[0]) == 4
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    assert part.base.weight.grad is None


def test_only_updates_and_the_pooler_learn() -> None:
    encoder = adapted()
    learning = {name for name, one in encoder.named_parameters() if one.requires_grad}
    assert {name for name in learning if ".updates." not in name} == {"pooler.dense.weight", "pooler.dense.bias"}
    assert sum(".updates." in name for name in learning) == TINY.depth * 2 * 2


def test_layers_that_share_weights_share_updates() -> None:
    encoder = adapted("albert", on=ALL)
    assert len(parts_of(encoder)) == 4, "project, output, up and down, once"
    first, second = (encoder.get_submodule(f"stack.blocks.{number}.mixer.part.project") for number in (0, 1))
    assert first is second


def test_the_seed_decides() -> None:
    downs = [parts_of(adapted(seed=seed))[0].updates["query"].get_parameter("down") for seed in (0, 0, 1)]
    assert torch.equal(downs[0], downs[1]) and not torch.equal(downs[0], downs[2])
    assert downs[0].abs().max() <= TINY.width**-0.5
    encoder, state = build(), torch.get_rng_state()
    adapt(encoder, LowRankSpec())
    assert torch.equal(torch.get_rng_state(), state), "no trace is left in torch's own generator"


def test_factors_are_told_for_one_matrix_or_for_each_part() -> None:
    part = parts_of(adapted())[0]
    query, key, value = part.factors(3)
    assert key is None and query is not None and value is not None
    (whole,) = part.factors(1)
    assert whole is not None and whole[0].shape == (6, TINY.width)
    torch.testing.assert_close(part.base.weight + 2 * whole[1] @ whole[0], part.weight, atol=1e-6, rtol=1e-5)


def test_the_kernel_of_the_activation_does_not_pass_over_the_update() -> None:
    dense = Dense(8, 16, nn.functional.gelu).eval()
    up = LowRankSpec(on=("up",)).build(dense.up, ("up",))
    dense.up = up  # type: ignore[assignment]
    nn.init.ones_(up.updates["up"].get_parameter("up"))
    states = torch.randn(4, 8)
    expected = dense.down(nn.functional.gelu(nn.functional.linear(states, up.weight, up.bias)))
    torch.testing.assert_close(dense(states), expected, atol=1e-5, rtol=1e-5)


def test_what_a_model_does_not_have_is_refused() -> None:
    encoder = build("bilstm")
    with pytest.raises(SpecError, match="have no query"):
        adapt(encoder, LowRankSpec())
    assert all(one.requires_grad for one in encoder.parameters()), "nothing was changed"
    with pytest.raises(SpecError, match="rank"):
        LowRankSpec.parse({"rank": 0})
    with pytest.raises(SpecError, match="on"):
        LowRankSpec.parse({"on": ("pooler",)})
