"""Planted structure and a tiny training loop: a rule enters, a model that learned it leaves, measured on unseen rows.

The loop is the contract in a line: samples (numpy) -> `Objective.corrupt` -> `collate` -> `Model.loss` -> optimizer.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from bertie.batch import Batch, Sample, collate
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.models.recipe import Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.objective import Vocabulary

MASK = 0  # the only special id: words are numbered from 1

Rule = Callable[[np.random.Generator], Sample]


def repeats(num_words: int, period: int, lengths: tuple[int, int]) -> Rule:
    """Random words that come again every `period` tokens: one word alone says nothing about any other."""

    def draw(rng: np.random.Generator) -> Sample:
        length = rng.integers(lengths[0], lengths[1] + 1)
        return {"tokens": np.resize(rng.integers(1, num_words + 1, period), length)}

    return draw


def noise(num_words: int, lengths: tuple[int, int]) -> Rule:
    """Rows without any rule: what is right here was guessed."""

    def draw(rng: np.random.Generator) -> Sample:
        return {"tokens": rng.integers(1, num_words + 1, rng.integers(lengths[0], lengths[1] + 1))}

    return draw


def draw_batch(model: Model, rule: Rule, num_rows: int, seed: Sequence[int]) -> Batch:
    """Rows under a rule, corrupted by all objectives in turn. The same seed gives the same batch."""
    rng = np.random.default_rng(seed)
    vocabulary = Vocabulary(model.recipe.vocab_size, mask=MASK, special=frozenset({MASK}))
    samples = []
    for _ in range(num_rows):
        sample = rule(rng)
        for objective in model.recipe.objectives:
            sample = objective.corrupt(sample, vocabulary, rng)
        samples.append(sample)
    return collate(samples)


def train(model: Model, rule: Rule, steps: int, rate: float = 5e-3, num_rows: int = 24, seed: int = 1) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    model.train()
    for step in range(steps):
        optimizer.zero_grad()
        model.loss(draw_batch(model, rule, num_rows, (seed, step))).loss().backward()
        optimizer.step()
        schedule.step()


def measure(model: Model, rule: Rule, num_rows: int = 200) -> dict[str, float]:
    """Mean losses and metrics on rows that training never drew."""
    model.eval()
    with torch.no_grad():
        return model.loss(draw_batch(model, rule, num_rows, (987_654,))).means()


def save_and_load(model: Model, folder: Path, recipe_type: type[Recipe], batch: Batch) -> Model:
    """The loaded model, shown to be the saved one: recipe, every weight's bits, ties, and the loss on a batch."""
    assert recipe_type.from_json(model.recipe.to_json()) == model.recipe
    with pytest.warns(UserWarning, match="transformers (has no such model|opens this model without its)"):
        told = Pretrained(model).save(folder)
    assert len(told) == 1
    pretrained = load(folder, recipe_type=recipe_type)
    loaded = pretrained.model
    assert pretrained.report.clean
    assert type(loaded.recipe) is recipe_type
    assert loaded.recipe == model.recipe
    before, after = model.state_dict(), loaded.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in loaded.named_parameters()]
    with torch.no_grad():
        assert torch.equal(model.loss(batch).loss(), loaded.loss(batch).loss())
    return loaded


def tiny_block(cross: bool = False, inner: int = 64) -> BlockSpec:
    attention = AttentionSpec(num_heads=2)
    return BlockSpec(
        mixer=attention,
        cross=attention if cross else None,
        feed_forward=DenseSpec(inner=inner),
        residual=PostNormSpec(dropout=0.0),
    )


def tiny_embeddings(num_words: int, num_positions: int | None = 16) -> EmbeddingsSpec:
    tables = [TableSpec(field="tokens", size=num_words + 1)]
    if num_positions is not None:
        tables.append(TableSpec(field="positions", size=num_positions))
    return EmbeddingsSpec(tables=tuple(tables), dropout=0.0)


def tiny_encoder(num_words: int, num_positions: int | None = 16, width: int = 32, depth: int = 1) -> EncoderSpec:
    return EncoderSpec(
        width=width,
        embeddings=tiny_embeddings(num_words, num_positions),
        stack=StackSpec(depth=depth, block=tiny_block()),
        initial_std=0.2,
    )
