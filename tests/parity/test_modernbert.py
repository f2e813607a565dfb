"""ModernBERT beside `transformers`: local and global layers, all kinds of bias, folders both ways, old configs."""

import json
import random
from collections.abc import Callable
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
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import modernbert, quick
from bertie.nn.stack import StackSpec
from bertie.nn.visibility import Full, Window

FULL, LOCAL = "full_attention", "sliding_attention"
NO_IDS: dict[str, Any] = dict.fromkeys(["bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"])


def random_config(seed: int, **changes: Any) -> transformers.ModernBertConfig:
    draw = random.Random(seed)
    heads, depth, norm_bias = draw.choice([1, 2, 3]), draw.choice([1, 2, 3, 4, 5]), draw.random() < 0.5
    types = [[FULL], [FULL, LOCAL], [FULL, LOCAL, LOCAL], [LOCAL, FULL], [LOCAL, LOCAL, FULL, LOCAL]]
    cycle = types[seed % len(types)]
    drawn = {
        "vocab_size": draw.choice([50, 97, 211]),
        "hidden_size": heads * draw.choice([4, 8, 16]),
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "intermediate_size": draw.choice([16, 40, 64]),
        "hidden_activation": draw.choice(["gelu", "gelu_new", "silu"]),
        "classifier_activation": draw.choice(["gelu", "silu"]),
        "norm_eps": draw.choice([1e-12, 1e-5]),
        "norm_bias": norm_bias,
        "classifier_bias": norm_bias,
        "attention_bias": draw.random() < 0.5,
        "mlp_bias": draw.random() < 0.5,
        "layer_types": [cycle[number % len(cycle)] for number in range(depth)],
        "local_attention": draw.choice([2, 5, 8, 128]),
        "rope_parameters": {
            FULL: {"rope_type": "default", "rope_theta": draw.choice([160_000.0, 500.0])},
            LOCAL: {"rope_type": "default", "rope_theta": draw.choice([10_000.0, 30.0])},
        },
        "tie_word_embeddings": draw.random() < 0.7,
        "initializer_range": 0.2,
        "pad_token_id": 0,
    }
    return transformers.ModernBertConfig(**{**NO_IDS, **drawn, **changes})


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("training", [False, True])
def test_random_configuration(seed: int, training: bool, tmp_path: Path) -> None:
    """Every layer, the logits, the loss and every gradient."""
    config = random_config(seed)
    torch.manual_seed(seed)
    theirs = shaken(transformers.ModernBertForMaskedLM(config), seed).train(training)
    ours = opened(theirs, tmp_path)
    batch = draw_batch(seed, config.vocab_size, longest=40)
    expected = theirs(**padded_inputs(batch), output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["masked-lm"](states.values), states.unpad(expected.logits).values)
    same_losses(ours, batch, theirs, expected, "modernbert")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("architecture", ["ModernBertModel", "ModernBertForMaskedLM"])
def test_folders_there_and_back(architecture: str, seed: int, tmp_path: Path) -> None:
    torch.manual_seed(seed)
    theirs = shaken(getattr(transformers, architecture)(random_config(seed)), seed)
    reopened(theirs, tmp_path)


@pytest.mark.parametrize(("recipe", "depth"), [(modernbert, 1), (modernbert, 2), (quick, 3), (modernbert, 5)])
def test_a_recipe_from_scratch_opens_there(recipe: Callable[..., Recipe], depth: int, tmp_path: Path) -> None:
    ours = Pretrained(Model.new(recipe(Size(depth=depth, width=32, num_heads=2), vocab_size=300), seed=1))
    assert ours.save(tmp_path) == []
    theirs = from_folder(transformers.ModernBertForMaskedLM, tmp_path)
    ids = list(range(1, 170))  # further than a local layer sees
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids]), output_hidden_states=True)
        states = torch.from_numpy(ours.hidden_states(ids))
        close(states, torch.cat(expected.hidden_states))
        close(ours.model.heads["masked-lm"](states[-1]), expected.logits[0])
    same_again(ours, tmp_path)


def edit_config(folder: Path, *gone: str, **changes: object) -> None:
    content = {**json.loads((folder / "config.json").read_text()), **changes}
    (folder / "config.json").write_text(json.dumps({name: content[name] for name in content if name not in gone}))


def test_the_older_spelling_of_a_config_is_read(tmp_path: Path) -> None:
    config = random_config(0, num_hidden_layers=5, layer_types=None, local_attention=6)
    transformers.ModernBertForMaskedLM(config).save_pretrained(tmp_path)
    old = {"global_rope_theta": 77.0, "local_rope_theta": 55.0, "global_attn_every_n_layers": 2}
    edit_config(tmp_path, "layer_types", "rope_parameters", **old)
    encoder = bertie.load(tmp_path).recipe.encoder
    assert isinstance(encoder.stack, StackSpec)
    assert encoder.stack.visibility == (Full(), Window(reach=3))
    blocks = (encoder.stack.block, *encoder.stack.next_blocks)
    assert [block.mixer.scorer.base for block in blocks] == [77.0, 55.0]  # type: ignore[union-attr]


def test_the_shortest_cycle_of_layers_is_found(tmp_path: Path) -> None:
    """What `transformers` saved by default is the recipe's own encoder."""
    recipe = modernbert(SIZES["mini"], vocab_size=50)
    width, num_heads, depth = recipe.encoder.width, 4, 4
    config = transformers.ModernBertConfig(
        vocab_size=50,
        hidden_size=width,
        num_attention_heads=num_heads,
        num_hidden_layers=depth,
        intermediate_size=3 * width // 2,
        pad_token_id=0,
        **NO_IDS,
    )
    transformers.ModernBertForMaskedLM(config).save_pretrained(tmp_path)
    loaded = bertie.load(tmp_path).recipe
    assert loaded.encoder == recipe.encoder
    assert loaded.objectives == recipe.objectives


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rope_scaling": {"rope_type": "linear"}}, "rope_scaling"),
        ({"rope_parameters": {FULL: {"rope_type": "yarn", "rope_theta": 1e4}}}, "rope_type"),
        ({"layer_types": ["chunked_attention"]}, "layer_types"),
        ({"layer_types": [FULL] * 7}, "layer_types"),
    ],
)
def test_settings_that_change_the_computation_are_refused(
    changes: dict[str, object], told: str, tmp_path: Path
) -> None:
    config = random_config(0, num_hidden_layers=1, layer_types=[FULL], tie_word_embeddings=False)
    transformers.ModernBertForMaskedLM(config).save_pretrained(tmp_path)
    edit_config(tmp_path, **changes)
    with pytest.raises(FolderError, match=told):
        bertie.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"classifier_bias": True, "norm_bias": False}, "classifier_bias"),
        ({"decoder_bias": False}, "decoder_bias"),
    ],
)
def test_settings_of_the_head_alone_leave_the_encoder(changes: dict[str, object], named: str, tmp_path: Path) -> None:
    config = random_config(0, num_hidden_layers=1, layer_types=[FULL], tie_word_embeddings=False)
    transformers.ModernBertForMaskedLM(config).save_pretrained(tmp_path)
    edit_config(tmp_path, **changes)
    with pytest.warns(UserWarning, match=f"opened without its head.*{named}"):
        assert not bertie.load(tmp_path).recipe.objectives


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder.stack.input_normed": False},
        {"encoder.stack.block.feed_forward.inner": 7},  # other layers have another one
        {"encoder.stack.visibility": (Full(), Window(reach=4), Window(reach=5))},
        {"encoder.embeddings.norm_bias": True},
    ],
)
def test_what_it_cannot_express_keeps_our_names(changes: dict[str, object], tmp_path: Path) -> None:
    recipe = modernbert(Size(depth=3, width=16, num_heads=2), vocab_size=50)
    ours = Pretrained(Model.new(recipe.changed(changes)))
    with pytest.warns(UserWarning, match="transformers has no such model"):
        ours.save(tmp_path)
    same_again(ours, tmp_path)
