"""A permutation language model from test-only parts: the blocks of one stack run a content and a query stream.

The query stream knows where it stands and what comes before it in a random order, but not its own token. XLNet,
section 2.3.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from tests.contracts.planted import (
    draw_batch,
    measure,
    noise,
    repeats,
    save_and_load,
    tiny_encoder,
    train,
)
from torch import Tensor, nn

from bertie.batch import Batch, Places, Sample
from bertie.data.shapes import Segments
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.encoder import EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.visibility import Permutation
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary

NUM_WORDS = 20
LENGTHS = (10, 14)
RULE = repeats(NUM_WORDS, period=4, lengths=LENGTHS)


class TwoStreams(nn.Module):
    """What the query stream starts from, and the head at its end."""

    def __init__(self, width: int, head: VocabularyHead):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(width))
        self.head = head

    def query_states(self, encoder: Any, batch: Batch) -> Tensor:
        """[T, H] of the query stream after the last block."""
        content = encoder.embeddings(batch)
        positions = encoder.embeddings.tables["positions"].look_up(batch)
        query = encoder.embeddings.norm(self.start + positions)
        side = Side.of(batch)
        seeing_itself = Layout(side, side, Permutation())
        blind_to_itself = Layout(side, side, Permutation(strict=True))
        for block in encoder.stack.blocks:
            query, _ = block(query, content, blind_to_itself)
            content, _ = block(content, content, seeing_itself)
        return query


class PermutationLM(Objective):
    kind: Literal["permutation-lm"] = "permutation-lm"
    samples: Segments = Segments()
    share: float = Field(default=0.25, gt=0, le=1)  # of each row, the last in the order, is predicted

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        tokens = np.asarray(sample["tokens"])
        order = rng.permutation(len(tokens))
        chosen = np.flatnonzero(order >= round(len(tokens) * (1 - self.share)))
        return {**sample, "order": order, "predicted": Places("tokens", chosen), "predicted_targets": tokens[chosen]}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> TwoStreams:
        return TwoStreams(encoder.width, VocabularyHeadSpec().build(encoder, vocabulary.size))

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return {"head.weight": "embeddings.tables.tokens.weight"}

    def loss(self, owned: nn.Module, encoder: nn.Module, batch: Batch) -> LossReport:
        assert isinstance(owned, TwoStreams)
        states = owned.query_states(encoder, batch)
        logits = owned.head(states[batch.tensor("predicted")])
        targets = batch.tensor("predicted_targets")
        correct = (logits.detach().argmax(-1) == targets).float()
        losses = F.cross_entropy(logits, targets, reduction="none")
        return LossReport({"permutation_lm": Figure.over(losses)}, {"accuracy": Figure.over(correct)})


class PermutationRecipe(Recipe):
    objectives: tuple[PermutationLM, ...]


def new_model(depth: int = 2, share: float = 0.25) -> Model:
    encoder = tiny_encoder(NUM_WORDS, depth=depth)
    recipe = PermutationRecipe(name="permutation", encoder=encoder, objectives=(PermutationLM(share=share),))
    return Model.new(recipe, seed=0)


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = new_model(depth=1)
    assert measure(model, RULE)["accuracy"] < 0.2
    train(model, RULE, steps=250)
    assert measure(model, RULE)["accuracy"] > 0.9
    assert measure(model, noise(NUM_WORDS, LENGTHS))["accuracy"] < 0.2
    loaded = save_and_load(model, tmp_path / "model", PermutationRecipe, draw_batch(model, RULE, 8, (5,)))
    assert loaded.get_parameter("heads.permutation-lm.head.weight") is loaded.get_parameter(
        "encoder.embeddings.tables.tokens.weight"
    )
    assert measure(loaded, RULE)["accuracy"] > 0.9


def test_a_query_sees_what_comes_earlier_in_the_order_and_never_its_own_token() -> None:
    model = new_model(depth=2)
    batch = draw_batch(model, RULE, 3, (5,))
    tokens, order = batch.ragged("tokens"), batch.tensor("order")
    owned = model.heads["permutation-lm"]
    assert isinstance(owned, TwoStreams)
    content: list[Tensor] = []

    def keep(table: nn.Module, given: tuple[Tensor, ...], looked_up: Tensor) -> None:
        content.append(looked_up)

    model.encoder.embeddings.tables["tokens"].register_forward_hook(keep)
    states = owned.query_states(model.encoder, batch)
    for target in range(len(order)):
        (gradient,) = torch.autograd.grad(states[target].square().sum(), content[0], retain_graph=True)
        seen = gradient.abs().sum(-1) > 0
        expected = (order < order[target]) & (tokens.row_ids == tokens.row_ids[target])
        assert torch.equal(seen, expected)


def test_a_stream_that_sees_itself_would_be_noticed() -> None:
    """The whole row predicted: what comes first in the order cannot be known, so a perfect score would be a leak."""
    model = new_model(depth=1, share=1.0)
    train(model, RULE, steps=250)
    assert 0.4 < measure(model, RULE)["accuracy"] < 0.75
