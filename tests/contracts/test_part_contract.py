"""What a part may carry besides weights: a loss of its own, a hand in every step, numbers that are no parameters."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
import torch
from pydantic import Field
from tests.contracts.planted import draw_batch, repeats, save_and_load, tiny_block, tiny_encoder, train
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.spec import Spec

NUM_WORDS = 12
RULE = repeats(NUM_WORDS, period=3, lengths=(8, 12))


class Gated(nn.Module):
    """A feed-forward that pays for how far its gate is open, and keeps the gate between 0 and 1."""

    def __init__(self, part: nn.Module, price: float):
        super().__init__()
        self.part, self.price = part, price
        self.gate = nn.Parameter(torch.tensor(0.75))

    def forward(self, states: Tensor) -> Tensor:
        return self.gate * self.part(states)

    def auxiliary_loss(self) -> Tensor:
        return self.price * self.gate

    @torch.no_grad()
    def after_step(self) -> None:
        self.gate.clamp_(0, 1)


class GatedSpec(Spec):
    kind: Literal["gated"] = "gated"
    dense: DenseSpec = DenseSpec(inner=32)
    price: float = 0.5

    def build(self, width: int) -> Gated:
        return Gated(self.dense.build(width), self.price)


class Averaged(nn.Module):
    """A feed-forward whose norm keeps running means: buffers that are learned, and therefore saved."""

    def __init__(self, part: nn.Module, width: int):
        super().__init__()
        self.part = part
        self.norm = nn.BatchNorm1d(width)

    def forward(self, states: Tensor) -> Tensor:
        return self.norm(self.part(states))


class AveragedSpec(Spec):
    kind: Literal["averaged"] = "averaged"
    dense: DenseSpec = DenseSpec(inner=32)

    def build(self, width: int) -> Averaged:
        return Averaged(self.dense.build(width), width)


class Waves(nn.Module):
    """Positions that are computed, not learned: a buffer that need not be saved. Vaswani et al. (2017), section 3.5."""

    def __init__(self, size: int, width: int):
        super().__init__()
        angles = torch.arange(size)[:, None] * 10_000.0 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("table", torch.cat([angles.sin(), angles.cos()], 1), persistent=False)

    def look_up(self, batch: Batch) -> Tensor:
        return self.get_buffer("table")[batch.ragged("tokens").positions]


class WavesSpec(Spec):
    kind: Literal["waves"] = "waves"
    field: Literal["positions"] = "positions"
    size: int = 16

    def build(self, width: int) -> Waves:
        return Waves(self.size, width)


class OwnBlockSpec(BlockSpec):
    feed_forward: Annotated[GatedSpec | AveragedSpec | DenseSpec, Field(discriminator="kind")]  # type: ignore[assignment]


class OwnStackSpec(StackSpec):
    block: OwnBlockSpec


class OwnEmbeddingsSpec(EmbeddingsSpec):
    tables: tuple[Annotated[TableSpec | WavesSpec, Field(discriminator="kind")], ...]  # type: ignore[assignment]


class OwnEncoderSpec(EncoderSpec):
    embeddings: OwnEmbeddingsSpec
    stack: OwnStackSpec


class OwnRecipe(Recipe):
    encoder: OwnEncoderSpec


PLAIN = DenseSpec(inner=32)


def new_model(feed_forward: GatedSpec | AveragedSpec | DenseSpec = PLAIN, waves: bool = False, depth: int = 2) -> Model:
    tokens = TableSpec(field="tokens", size=NUM_WORDS + 1)
    positions = WavesSpec() if waves else TableSpec(field="positions", size=16)
    block = OwnBlockSpec(mixer=tiny_block().mixer, feed_forward=feed_forward, residual=PostNormSpec(dropout=0.0))
    encoder = OwnEncoderSpec(
        width=32,
        embeddings=OwnEmbeddingsSpec(tables=(tokens, positions), dropout=0.0),
        stack=OwnStackSpec(depth=depth, block=block),
        initial_std=0.2,
    )
    return Model.new(OwnRecipe(name="own", encoder=encoder, objectives=(MaskedLM(),)), seed=0)


def gates(model: Model) -> list[Gated]:
    return [part for part in model.modules() if isinstance(part, Gated)]


def test_parts_own_losses_are_summed() -> None:
    model = new_model(GatedSpec(price=0.5), depth=3)
    loss = model.auxiliary_loss()
    assert loss is not None
    assert float(loss.detach()) == pytest.approx(3 * 0.5 * 0.75)
    loss.backward()
    assert [float(part.gate.grad) for part in gates(model) if part.gate.grad is not None] == [0.5, 0.5, 0.5]


def test_a_model_of_plain_parts_has_no_loss_of_its_own() -> None:
    assert Model.new(Recipe(name="plain", encoder=tiny_encoder(NUM_WORDS))).auxiliary_loss() is None


def test_parts_put_themselves_right_after_a_step() -> None:
    model = new_model(GatedSpec(), depth=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
    loss = model.auxiliary_loss()
    assert loss is not None
    loss.backward()
    optimizer.step()
    assert [float(part.gate.detach()) for part in gates(model)] == [-1.25, -1.25]
    model.after_step()
    assert [float(part.gate.detach()) for part in gates(model)] == [0.0, 0.0]


def test_a_part_nested_in_shared_specs_is_saved_and_loaded(tmp_path: Path) -> None:
    model = new_model(GatedSpec(price=0.25))
    loaded = save_and_load(model, tmp_path / "model", OwnRecipe, draw_batch(model, RULE, 4, (5,)))
    assert [part.price for part in gates(loaded)] == [0.25, 0.25]


def test_computed_buffers_are_there_after_loading(tmp_path: Path) -> None:
    model = new_model(waves=True)
    loaded = save_and_load(model, tmp_path / "model", OwnRecipe, draw_batch(model, RULE, 4, (5,)))
    kept, found = dict(model.named_buffers()), dict(loaded.named_buffers())
    assert set(kept) == set(found) == {"encoder.embeddings.tables.positions.table"}
    assert all(torch.equal(kept[name], found[name]) for name in kept)


def test_learned_buffers_are_saved(tmp_path: Path) -> None:
    model = new_model(AveragedSpec(), depth=1)
    train(model, RULE, steps=5)
    means = model.get_buffer("encoder.stack.blocks.0.feed_forward.part.norm.running_mean")
    assert means.abs().sum() > 0
    save_and_load(model, tmp_path / "model", OwnRecipe, draw_batch(model, RULE, 4, (5,)))
