"""XLM beside `transformers`: languages, positions that begin anew, padding, folders both ways."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.parity.comparing import (
    close,
    draw_batch,
    from_folder,
    opened,
    padded_inputs,
    reopened,
    same_again,
    same_losses,
    same_states,
    shaken,
)

import bertie
from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import xlm


def random_config(seed: int, **changes: Any) -> transformers.XLMConfig:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 4])
    drawn = {
        "vocab_size": draw.choice([50, 97, 211]),
        "emb_dim": heads * draw.choice([4, 8, 16]),
        "n_layers": draw.choice([1, 2, 3]),
        "n_heads": heads,
        "n_langs": [2, 1, 3, 15][seed % 4],
        "use_lang_emb": seed % 5 != 4,
        "gelu_activation": draw.random() < 0.5,
        "sinusoidal_embeddings": draw.random() < 0.3,
        "max_position_embeddings": draw.choice([32, 40]),
        "layer_norm_eps": draw.choice([1e-12, 1e-5]),
        "tie_word_embeddings": draw.random() < 0.7,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "init_std": 0.2,
        "embed_init_std": 0.2,
    }
    return transformers.XLMConfig(**{**drawn, **changes})


def has_languages(config: transformers.XLMConfig) -> bool:
    return config.use_lang_emb and config.n_langs > 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("training", [False, True])
def test_random_configuration(seed: int, training: bool, tmp_path: Path) -> None:
    """Every layer, the logits, the loss and every gradient; half of the time positions begin anew within a row."""
    config = random_config(seed)
    torch.manual_seed(seed)
    theirs = shaken(transformers.XLMWithLMHeadModel(config), seed).train(training)
    ours = opened(theirs, tmp_path)
    batch = draw_batch(seed, config.vocab_size, longest=30)
    asked = padded_inputs(batch)
    tokens = batch.ragged("tokens")
    half = tokens.lengths[tokens.row_ids] // 2
    second = (tokens.positions >= half).long()
    if has_languages(config):
        languages = tokens.with_values(second * (config.n_langs - 1))
        batch, asked["langs"] = batch.with_fields({"languages": languages}), languages.pad()
    if seed % 2:
        positions = tokens.with_values(tokens.positions - second * half)
        batch, asked["position_ids"] = batch.with_fields({"positions": positions}), positions.pad()
    expected = theirs(**asked, output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["masked-lm"](states.values), tokens.unpad(expected.logits).values)
    same_losses(ours, batch, theirs, expected, "xlm")


def test_without_languages_all_is_of_the_first(tmp_path: Path) -> None:
    theirs = transformers.XLMModel(random_config(0)).eval()
    theirs.save_pretrained(tmp_path)
    ids = torch.arange(3, 15)
    with torch.inference_mode():
        expected = theirs(ids[None], langs=torch.zeros(1, 12, dtype=torch.int64)).last_hidden_state[0]
    close(torch.from_numpy(bertie.load(tmp_path).hidden_states(ids.numpy())[-1]), expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("architecture", ["XLMModel", "XLMWithLMHeadModel"])
def test_folders_there_and_back(architecture: str, seed: int, tmp_path: Path) -> None:
    config = random_config(seed)
    torch.manual_seed(seed)
    theirs = shaken(getattr(transformers, architecture)(config), seed)
    languages = torch.arange(24).view(2, 12) % config.n_langs
    reopened(theirs, tmp_path, {"langs": languages if has_languages(config) else None})


def test_a_recipe_from_scratch_opens_there(tmp_path: Path) -> None:
    """Also rows that hold the id that `transformers` takes for padding by default."""
    ours = Pretrained(Model.new(xlm(SIZES["tiny"], vocab_size=300), seed=1))
    assert ours.save(tmp_path) == []
    theirs = from_folder(transformers.XLMWithLMHeadModel, tmp_path)
    ids = [2, 5, 0, 2, 200, 299]
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids]), langs=torch.zeros(1, 6, dtype=torch.int64), output_hidden_states=True)
        states = torch.from_numpy(ours.hidden_states(ids))
        close(states, torch.cat(expected.hidden_states))
        close(ours.model.heads["masked-lm"](states[-1]), expected.logits[0])
    same_again(ours, tmp_path)


def test_the_older_name_of_the_vocabulary_size_is_read(tmp_path: Path) -> None:
    transformers.XLMModel(random_config(0)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    size = config.pop("vocab_size")
    (tmp_path / "config.json").write_text(json.dumps({**config, "n_words": size}))
    assert bertie.load(tmp_path).recipe.vocab_size == size


@pytest.mark.parametrize(("name", "value"), [("causal", True), ("asm", True), ("is_encoder", False)])
def test_settings_that_change_the_computation_are_refused(name: str, value: object, tmp_path: Path) -> None:
    transformers.XLMModel(random_config(0)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(FolderError, match=f"sets {name} to {value!r}"):
        bertie.load(tmp_path)


def test_another_inner_width_keeps_our_names(tmp_path: Path) -> None:
    recipe = xlm(SIZES["tiny"], vocab_size=50).changed({"encoder.stack.block.feed_forward.inner": 100})
    ours = Pretrained(Model.new(recipe))
    with pytest.warns(UserWarning, match="transformers has no such model"):
        ours.save(tmp_path)
    same_again(ours, tmp_path)
