"""A reversible stack from test-only parts, inside the shared encoder, under the shared masked language model.

Two halves of the width take turns: y1 = x1 + f(x2), y2 = x2 + g(y1). Only the last states are kept; going backward,
each layer's input is computed again from its output. Reformer, section 3.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from tests.contracts.planted import (
    draw_batch,
    measure,
    noise,
    repeats,
    save_and_load,
    tiny_embeddings,
    train,
)
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.memory import Memory
from bertie.nn.stack import Context, Layer, LayerStack, Stacked
from bertie.nn.visibility import Full
from bertie.objectives.masked_lm import MaskedLM
from bertie.spec import Spec

NUM_WORDS = 20
LENGTHS = (10, 14)
RULE = repeats(NUM_WORDS, period=4, lengths=LENGTHS)


class ReversibleBlock(nn.Module):
    """The shared attention and feed-forward, each behind a norm and on half of the width."""

    def __init__(self, width: int, attention: nn.Module, feed_forward: nn.Module):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width // 2) for _ in range(2)])
        self.attention, self.feed_forward = attention, feed_forward

    def f(self, half: Tensor, layout: Layout) -> Tensor:
        entered = self.norms[0](half)
        return self.attention(entered, entered, layout)[0]

    def g(self, half: Tensor) -> Tensor:
        return self.feed_forward(self.norms[1](half))

    def forward(self, first: Tensor, second: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        first = first + self.f(second, layout)
        return first, second + self.g(first)

    def inverse(self, first: Tensor, second: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        second = second - self.g(first)
        return first - self.f(second, layout), second


class Recomputed(torch.autograd.Function):
    """All blocks in a row; the graph holds nothing between them."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, blocks: Sequence[ReversibleBlock], layout: Layout, *parameters: Tensor
    ) -> Tensor:
        halves = states.chunk(2, -1)
        for block in blocks:
            halves = block(*halves, layout)
        ctx.blocks, ctx.layout, ctx.parameters = blocks, layout, parameters
        ctx.save_for_backward(*halves)
        return torch.cat(halves, -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        halves = ctx.saved_tensors
        gradients = gradient.chunk(2, -1)
        of_parameters: dict[Tensor, Tensor] = {}
        for block in reversed(ctx.blocks):
            halves = [half.requires_grad_() for half in block.inverse(*halves, ctx.layout)]
            own = list(block.parameters())
            with torch.enable_grad():
                outputs = block(*halves, ctx.layout)
            first, second, *others = torch.autograd.grad(outputs, [*halves, *own], gradients)
            gradients = first, second
            halves = [half.detach() for half in halves]
            of_parameters.update(zip(own, others, strict=True))
        return torch.cat(gradients, -1), None, None, *(of_parameters[each] for each in ctx.parameters)


class ReversibleStack(LayerStack):
    """Stands where the encoder expects a stack."""

    def __init__(self, blocks: Sequence[ReversibleBlock], final_norm: nn.Module, recompute: bool):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = final_norm
        self.recompute = recompute

    def layers(self) -> list[tuple[Layer, ...]]:
        return [(Layer(block, Full()),) for block in self.blocks]

    def forward(
        self,
        states: Tensor,
        layout: Layout,
        memory: Memory | None = None,
        context: Context | None = None,
        keep_layers: bool = False,
        wanted: Tensor | None = None,
    ) -> Stacked:
        """All states leave, also those that nobody wants."""
        assert memory is None and context is None and not keep_layers
        if self.recompute:
            states = Recomputed.apply(states, tuple(self.blocks), layout, *self.blocks.parameters())
        else:
            halves = states.chunk(2, -1)
            for block in self.blocks:
                halves = block(*halves, layout)
            states = torch.cat(halves, -1)
        return Stacked(self.final_norm(states), (), None)


class ReversibleStackSpec(Spec):
    kind: Literal["reversible-stack"] = "reversible-stack"
    depth: int = Field(ge=1)
    attention: AttentionSpec
    feed_forward: DenseSpec
    recompute: bool = True

    def build(self, width: int) -> ReversibleStack:
        half = width // 2
        blocks = [
            ReversibleBlock(width, self.attention.build(half), self.feed_forward.build(half)) for _ in range(self.depth)
        ]
        return ReversibleStack(blocks, nn.LayerNorm(width), self.recompute)


class ReversibleEncoderSpec(EncoderSpec):
    stack: ReversibleStackSpec  # type: ignore[assignment]


class ReversibleRecipe(Recipe):
    encoder: ReversibleEncoderSpec
    objectives: tuple[MaskedLM, ...]


def new_model(depth: int = 2, recompute: bool = True) -> Model:
    stack = ReversibleStackSpec(
        depth=depth, attention=AttentionSpec(num_heads=2), feed_forward=DenseSpec(inner=64), recompute=recompute
    )
    encoder = ReversibleEncoderSpec(width=64, embeddings=tiny_embeddings(NUM_WORDS), stack=stack, initial_std=0.15)
    recipe = ReversibleRecipe(name="reversible", encoder=encoder, objectives=(MaskedLM(),))
    return Model.new(recipe, seed=0)


def embed(model: Model, batch: Batch) -> tuple[Tensor, Layout]:
    return model.encoder.embeddings(batch).detach(), Layout.within(Side.of(batch))


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = new_model()
    assert measure(model, RULE)["masked_lm_accuracy"] < 0.2
    train(model, RULE, steps=250)
    assert measure(model, RULE)["masked_lm_accuracy"] > 0.9
    assert measure(model, noise(NUM_WORDS, LENGTHS))["masked_lm_accuracy"] < 0.2
    loaded = save_and_load(model, tmp_path / "model", ReversibleRecipe, draw_batch(model, RULE, 8, (5,)))
    assert measure(loaded, RULE)["masked_lm_accuracy"] > 0.9


def test_recomputed_gradients_equal_those_of_kept_states() -> None:
    """Both models have the same seed, hence the same weights."""
    recomputing, keeping = new_model(depth=4).double(), new_model(depth=4, recompute=False).double()
    batch = draw_batch(recomputing, RULE, 6, (5,))
    losses = [model.loss(batch).loss() for model in (recomputing, keeping)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=0)
    for (name, one), (_, other) in zip(recomputing.named_parameters(), keeping.named_parameters(), strict=True):
        assert one.grad is not None and one.grad.abs().sum() > 0, name
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-9, atol=1e-11)


def test_a_block_gives_back_what_entered() -> None:
    model = new_model().double()
    states, layout = embed(model, draw_batch(model, RULE, 6, (5,)))
    block = model.encoder.stack.get_submodule("blocks.0")
    assert isinstance(block, ReversibleBlock)
    entered = states.chunk(2, -1)
    first, second = block(*entered, layout)
    assert not torch.allclose(first, entered[0])
    torch.testing.assert_close(block.inverse(first, second, layout), entered, rtol=0, atol=1e-12)


def test_what_is_kept_does_not_grow_with_depth() -> None:
    def kept(depth: int, recompute: bool) -> int:
        model = new_model(depth, recompute)
        states, layout = embed(model, draw_batch(model, RULE, 6, (5,)))
        parameters = {parameter.data_ptr() for parameter in model.parameters()}
        sizes: list[int] = []

        def pack(tensor: Tensor) -> Tensor:
            if tensor.data_ptr() not in parameters:
                sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model.encoder.stack(states.requires_grad_(), layout)
        return sum(sizes)

    assert kept(2, recompute=True) == kept(8, recompute=True)
    assert kept(2, recompute=False) * 3 < kept(8, recompute=False)
