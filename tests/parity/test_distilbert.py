"""DistilBERT beside `transformers`: random small models, evaluation and training, folders both ways."""

import random
from pathlib import Path

import pytest
import torch
import transformers
from tests.parity.comparing import (
    close,
    draw_batch,
    from_folder,
    from_scratch,
    opened,
    padded_inputs,
    reopened,
    same_losses,
    same_states,
)

from bertie.models.recipe import SIZES
from bertie.models.recipes import distilbert
from bertie.objectives.masked_lm import MaskedLM


def random_config(seed: int, tied: bool = True) -> transformers.DistilBertConfig:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3])
    return transformers.DistilBertConfig(
        vocab_size=draw.choice([50, 97]),
        dim=heads * draw.choice([4, 8]),
        n_layers=draw.choice([1, 2, 3]),
        n_heads=heads,
        hidden_dim=draw.choice([16, 40]),
        activation=draw.choice(["gelu", "relu"]),
        max_position_embeddings=draw.choice([32, 40]),
        sinusoidal_pos_embds=seed % 2 == 1,
        dropout=0.0,
        attention_dropout=0.0,
        initializer_range=0.2,
        tie_word_embeddings=tied,
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_random_configuration(seed: int, training: bool, tmp_path: Path) -> None:
    """Hidden states, logits, the loss and every gradient; some with sinusoidal positions or an own output table."""
    config = random_config(seed, tied=seed < 4)
    torch.manual_seed(seed)
    theirs = transformers.DistilBertForMaskedLM(config).train(training)
    ours = opened(theirs, tmp_path)
    assert ours.recipe.encoder.embeddings.fields == ("tokens", "positions")
    batch = draw_batch(seed, config.vocab_size, config.max_position_embeddings)
    expected = theirs(**padded_inputs(batch), output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["masked-lm"](states.values), batch.ragged("tokens").unpad(expected.logits).values)
    same_losses(ours, batch, theirs, expected, "distilbert")


@pytest.mark.parametrize("sinusoidal", [0, 1])
@pytest.mark.parametrize("architecture", ["DistilBertModel", "DistilBertForMaskedLM"])
def test_saved_folder_opens_in_transformers(architecture: str, sinusoidal: int, tmp_path: Path) -> None:
    reopened(getattr(transformers, architecture)(random_config(2 + sinusoidal)), tmp_path)


@pytest.mark.parametrize("kind", ["distillation", "masked-lm"])
def test_recipe_from_scratch_opens_in_transformers(kind: str, tmp_path: Path) -> None:
    """A student's head is a head for masked tokens there."""
    recipe = distilbert(SIZES["tiny"], vocab_size=300)
    ours = from_scratch(recipe if kind == "distillation" else recipe.replace(objectives=(MaskedLM(),)), tmp_path)
    theirs = from_folder(transformers.AutoModelForMaskedLM, tmp_path)
    batch = draw_batch(0, 300, 40)
    with torch.inference_mode():
        expected = theirs(**padded_inputs(batch), output_hidden_states=True)
        states = same_states(ours, batch, expected)
        close(ours.heads[kind](states.values), batch.ragged("tokens").unpad(expected.logits).values)
