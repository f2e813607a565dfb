"""A language model of two LSTMs, one each way, from test-only parts: a mixer that remembers, a residual of none.

One half of the width reads forward and foretells the next token, the other reads backward and foretells the previous
one; the halves never meet below the head. ELMo, section 3.1.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from tests.contracts.planted import draw_batch, measure, noise, repeats, save_and_load, train
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertie.batch import Batch, Places, Ragged, Sample
from bertie.data.shapes import Segments
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.heads import Classifier
from bertie.nn.initial import initialized
from bertie.nn.layout import Layout
from bertie.nn.memory import LayerMemory
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary
from bertie.spec import Spec

NUM_WORDS = 16
LENGTHS = (6, 10)
RULE = repeats(NUM_WORDS, period=2, lengths=LENGTHS)


class BothWays(nn.Module):
    """A mixer. What lies ahead of the next segment is unknown, so only the forward reading is remembered."""

    def __init__(self, width: int):
        super().__init__()
        self.forward_lstm = nn.LSTM(width // 2, width // 2, batch_first=True)
        self.backward_lstm = nn.LSTM(width // 2, width // 2, batch_first=True)

    def forward(
        self, query_states: Tensor, key_states: Tensor, layout: Layout, memory: LayerMemory | None = None
    ) -> tuple[Tensor, LayerMemory | None]:
        assert query_states is key_states
        rows = layout.query.rows
        ahead, back = key_states.chunk(2, -1)
        read_ahead, kept = _read(self.forward_lstm, rows.with_values(ahead), memory)
        turned = rows.starts[rows.row_ids] + rows.lengths[rows.row_ids] - 1 - rows.positions  # its own inverse
        read_back, _ = _read(self.backward_lstm, rows.with_values(back[turned]), None)
        return torch.cat([read_ahead, read_back[turned]], -1), kept


def _read(lstm: nn.LSTM, rows: Ragged, memory: LayerMemory | None) -> tuple[Tensor, LayerMemory]:
    packed = pack_padded_sequence(rows.pad(), rows.lengths, batch_first=True, enforce_sorted=False)
    begun = None if memory is None else tuple(memory[name][None] for name in ("hidden", "cell"))  # type: ignore[index]
    output, (hidden, cell) = lstm(packed, begun)
    rectangle, _ = pad_packed_sequence(output, batch_first=True)
    return rows.unpad(rectangle).values, {"hidden": hidden.detach()[0], "cell": cell.detach()[0]}


class BothWaysSpec(Spec):
    kind: Literal["both-ways"] = "both-ways"

    def build(self, width: int) -> BothWays:
        return BothWays(width)


class Replace(nn.Module):
    """A residual layout without a residual; a norm over the width would let one direction look at the other."""

    def enter(self, states: Tensor) -> Tensor:
        return states

    def leave(self, states: Tensor, output: Tensor) -> Tensor:
        return output


class ReplaceSpec(Spec):
    kind: Literal["replace"] = "replace"

    def build(self, width: int) -> Replace:
        return Replace()

    def build_final(self, width: int) -> nn.Module:
        return nn.Identity()


class TwoDirectionLM(Objective):
    kind: Literal["two-direction-lm"] = "two-direction-lm"
    samples: Segments = Segments()
    context: int = 1  # tokens that a direction has read before it is asked

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        tokens = np.asarray(sample["tokens"])
        ahead = np.arange(self.context - 1, len(tokens) - 1)
        back = np.arange(1, len(tokens) - self.context + 1)
        return {
            **sample,
            "ahead": Places("tokens", ahead),
            "ahead_targets": tokens[ahead + 1],
            "back": Places("tokens", back),
            "back_targets": tokens[back - 1],
        }

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Classifier:
        return initialized(Classifier(encoder.width // 2, vocabulary.size), encoder.initial_std)

    def loss(self, owned: nn.Module, encoder: nn.Module, batch: Batch) -> LossReport:
        halves = encoder(batch).states.values.chunk(2, -1)
        losses, metrics = {}, {}
        for direction, half in zip(("ahead", "back"), halves, strict=True):
            logits = owned(half[batch.tensor(direction)])
            targets = batch.tensor(f"{direction}_targets")
            losses[direction] = Figure.over(F.cross_entropy(logits, targets, reduction="none"))
            metrics[f"{direction}_accuracy"] = Figure.over((logits.detach().argmax(-1) == targets).float())
        return LossReport(losses, metrics)


class BothWaysBlockSpec(BlockSpec):
    mixer: BothWaysSpec  # type: ignore[assignment]
    residual: ReplaceSpec  # type: ignore[assignment]


class BothWaysStackSpec(StackSpec):
    block: BothWaysBlockSpec


class BothWaysEncoderSpec(EncoderSpec):
    stack: BothWaysStackSpec


class BothWaysRecipe(Recipe):
    encoder: BothWaysEncoderSpec
    objectives: tuple[TwoDirectionLM, ...]


def new_model(depth: int = 2) -> Model:
    embeddings = EmbeddingsSpec(tables=(TableSpec(field="tokens", size=NUM_WORDS + 1),), norm_eps=None, dropout=0.0)
    block = BothWaysBlockSpec(mixer=BothWaysSpec(), residual=ReplaceSpec())
    encoder = BothWaysEncoderSpec(
        width=64, embeddings=embeddings, stack=BothWaysStackSpec(depth=depth, block=block), initial_std=0.5
    )
    recipe = BothWaysRecipe(name="both-ways", encoder=encoder, objectives=(TwoDirectionLM(context=2),))
    return Model.new(recipe, seed=0)


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = new_model()
    train(model, RULE, steps=200, rate=1e-2)
    for direction in ("ahead_accuracy", "back_accuracy"):
        assert measure(new_model(), RULE)[direction] < 0.2
        assert measure(model, RULE)[direction] > 0.9
        assert measure(model, noise(NUM_WORDS, LENGTHS))[direction] < 0.2
    loaded = save_and_load(model, tmp_path / "model", BothWaysRecipe, draw_batch(model, RULE, 8, (5,)))
    assert measure(loaded, RULE) == measure(model, RULE)


def test_each_direction_sees_its_own_side_only() -> None:
    model = new_model()
    batch = draw_batch(model, RULE, 3, (5,))
    rows = batch.ragged("tokens")
    looked_up: list[Tensor] = []

    def keep(table: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        looked_up.append(output)

    model.encoder.embeddings.tables["tokens"].register_forward_hook(keep)
    ahead, back = model.encoder(batch).states.values.chunk(2, -1)

    def seen_by(state: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(state.square().sum(), looked_up[0], retain_graph=True)
        return gradient.abs().sum(-1) > 0

    for token in range(len(rows.values)):
        own_row = rows.row_ids == rows.row_ids[token]
        assert torch.equal(seen_by(ahead[token]), own_row & (rows.positions <= rows.positions[token]))
        assert torch.equal(seen_by(back[token]), own_row & (rows.positions >= rows.positions[token]))


def test_two_halves_with_memory_read_forward_as_one_whole() -> None:
    model = new_model().double().eval()
    rng = np.random.default_rng(0)
    whole = Ragged.of([rng.integers(1, NUM_WORDS + 1, length) for length in (5, 9, 7)])
    cuts = (2, 4, 6)
    starts = Ragged.of([row[:cut] for row, cut in zip(whole.rows(), cuts, strict=True)])
    ends = Ragged.of([row[cut:] for row, cut in zip(whole.rows(), cuts, strict=True)])
    with torch.no_grad():
        at_once = model.encoder(Batch({"tokens": whole})).states
        first = model.encoder(Batch({"tokens": starts}))
        second = model.encoder(Batch({"tokens": ends}), memory=first.memory)
        forgetful = model.encoder(Batch({"tokens": ends}))
    joined = first.states.join(second.states).values
    width = joined.shape[-1] // 2
    torch.testing.assert_close(joined[:, :width], at_once.values[:, :width], rtol=0, atol=1e-12)
    assert not torch.allclose(second.states.values[:, :width], forgetful.states.values[:, :width], atol=1e-3)
