"""GPT and GPT-2 beside `transformers`: states, logits, loss, gradients, folders both ways."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.parity.comparing import close, from_folder, from_scratch, opened, reopened, same_losses, same_states, shaken

from bertie.batch import Batch, collate
from bertie.models.recipe import SIZES
from bertie.models.recipes import RECIPES
from bertie.objectives.causal_lm import CausalLM
from bertie.objectives.objective import Vocabulary

MODELS: dict[str, tuple[Any, Any, Any]] = {
    "gpt2": (transformers.GPT2Config, transformers.GPT2Model, transformers.GPT2LMHeadModel),
    "openai-gpt": (transformers.OpenAIGPTConfig, transformers.OpenAIGPTModel, transformers.OpenAIGPTLMHeadModel),
}
LONGEST = 30


def random_config(seed: int, kind: str) -> Any:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 4])
    own = {"n_inner": draw.choice([None, 40]), "activation_function": draw.choice(["gelu_new", "gelu", "relu"])}
    return MODELS[kind][0](
        vocab_size=draw.choice([50, 97, 211]),
        n_positions=LONGEST,
        n_embd=heads * draw.choice([4, 8, 16]),
        n_layer=draw.choice([1, 2, 3]),
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.2,
        tie_word_embeddings=draw.random() < 0.7,
        **(own if kind == "gpt2" else {"afn": draw.choice(["gelu", "relu", "silu"])}),
    )


def draw_rows(seed: int, vocab_size: int) -> Batch:
    rng, vocabulary = np.random.default_rng(seed), Vocabulary(size=vocab_size)
    rows = [rng.integers(3, vocab_size, length) for length in rng.integers(1, LONGEST + 1, 5)]
    return collate([CausalLM().corrupt({"tokens": row}, vocabulary, rng) for row in rows])


def inputs_of(batch: Batch) -> dict[str, Any]:
    """`transformers` moves the labels by one itself."""
    tokens = batch.ragged("tokens")
    seen = tokens.with_values(torch.ones_like(tokens.values)).pad()
    return {"input_ids": tokens.pad(0), "attention_mask": seen, "labels": tokens.pad(-100)}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(6))
def test_random_configuration(seed: int, kind: str, training: bool, tmp_path: Path) -> None:
    torch.manual_seed(seed)
    theirs = shaken(MODELS[kind][2](random_config(seed, kind)), seed).train(training)
    ours = opened(theirs, tmp_path)
    batch = draw_rows(seed, theirs.config.vocab_size)
    expected = theirs(**inputs_of(batch), output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["causal-lm"](states.values), states.unpad(expected.logits).values)
    same_losses(ours, batch, theirs, expected, kind)


@pytest.mark.parametrize("kind", MODELS)
def test_saved_folder_opens_in_transformers(kind: str, tmp_path: Path) -> None:
    for number, architecture in enumerate(MODELS[kind][1:]):
        torch.manual_seed(number)
        theirs = shaken(architecture(random_config(number, kind)))
        reopened(theirs, tmp_path / architecture.__name__, inputs={"use_cache": False} if kind == "gpt2" else None)


@pytest.mark.parametrize(("name", "kind"), [("gpt", "openai-gpt"), ("gpt2", "gpt2")])
def test_recipe_from_scratch_opens_in_transformers(name: str, kind: str, tmp_path: Path) -> None:
    ours = from_scratch(RECIPES[name](SIZES["tiny"], 300), tmp_path)
    theirs = from_folder(transformers.AutoModelForCausalLM, tmp_path)
    assert type(theirs) is MODELS[kind][2]
    batch = draw_rows(0, 300)
    with torch.inference_mode():
        same_states(ours, batch, theirs(**inputs_of(batch), output_hidden_states=True))
