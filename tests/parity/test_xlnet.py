"""XLNet beside `transformers`: one stream and two, padding, segments, memory, folders both ways."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from tests.parity.comparing import (
    close,
    draw_batch,
    from_folder,
    opened,
    padded_inputs,
    reopened,
    same_again,
    same_gradients,
    same_losses,
    same_states,
    shaken,
)

import bertie
from bertie.batch import Batch, Ragged, Sample, collate
from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import xlnet
from bertie.objectives.objective import Vocabulary
from bertie.objectives.permutation_lm import PermutationLM, TwoStreams


def random_config(seed: int, **changes: Any) -> transformers.XLNetConfig:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 4])
    drawn = {
        "vocab_size": draw.choice([50, 97, 211]),
        "d_model": heads * draw.choice([4, 8, 16]),
        "n_layer": draw.choice([1, 2, 3]),
        "n_head": heads,
        "d_inner": draw.choice([16, 40, 64]),
        "ff_activation": draw.choice(["gelu", "gelu_new", "relu", "silu"]),
        "layer_norm_eps": draw.choice([1e-12, 1e-5]),
        "mem_len": draw.choice([None, 5, 20]),
        "tie_word_embeddings": draw.random() < 0.7,
        "dropout": 0.0,
        "initializer_range": 0.2,
    }
    return transformers.XLNetConfig(**{**drawn, **changes})


def twins(seed: int, training: bool, folder: Path, **changes: Any) -> tuple[Any, Model]:
    torch.manual_seed(seed)
    theirs = shaken(transformers.XLNetLMHeadModel(random_config(seed, **changes)), seed).train(training)
    return theirs, opened(theirs, folder)


def two_streams(model: Model) -> TwoStreams:
    owned = model.heads["permutation-lm"]
    assert isinstance(owned, TwoStreams)
    return owned


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("training", [False, True])
def test_one_stream(seed: int, training: bool, tmp_path: Path) -> None:
    """Every layer, the logits, the loss and every gradient, with and without segments."""
    theirs, ours = twins(seed, training, tmp_path)
    batch = draw_batch(seed, theirs.config.vocab_size, longest=30, num_segments=3 if seed % 2 else None)
    expected = theirs(**padded_inputs(batch), output_hidden_states=True)
    states = same_states(ours, batch, expected)
    logits = two_streams(ours).head(states.values)
    close(logits, states.unpad(expected.logits).values)
    loss = F.cross_entropy(logits[batch.tensor("masked")], batch.tensor("masked_targets"))
    close(loss, expected.loss)
    expected.loss.backward()
    loss.backward()
    same_gradients(ours, theirs, "xlnet")


@pytest.mark.parametrize("mem_len", [3, 7, 50])
@pytest.mark.parametrize("with_segments", [False, True])
def test_memory_over_three_calls(mem_len: int, with_segments: bool, tmp_path: Path) -> None:
    theirs, ours = twins(4, False, tmp_path, n_layer=3, mem_len=mem_len)
    generator = torch.Generator().manual_seed(0)
    memory, mems = None, None
    for length in (6, 4, 9):
        tokens = torch.randint(0, theirs.config.vocab_size, (3, length), generator=generator)
        segments = torch.randint(0, 2, (3, length), generator=generator)
        told = {"segments": Ragged.of(list(segments))} if with_segments else {}
        expected = theirs(
            tokens,
            token_type_ids=segments if with_segments else None,
            mems=mems,
            use_mems=True,
            output_hidden_states=True,
        )
        encoded = ours.encoder(Batch({"tokens": Ragged.of(list(tokens)), **told}), memory=memory, keep_layers=True)
        for own, other in zip(encoded.layers, expected.hidden_states, strict=True):
            close(own, other.flatten(0, 1))
        memory, mems = encoded.memory, expected.mems
        assert memory is not None
        for layer, theirs_kept in zip(memory.layers, mems, strict=True):
            assert layer is not None
            kept = layer["states"]
            assert isinstance(kept, Ragged)
            close(kept.pad(), theirs_kept.transpose(0, 1))


def permuted(config: transformers.XLNetConfig, seed: int) -> list[Sample]:
    """Rows that begin and end with special tokens, as those of a corpus do."""
    rng = np.random.default_rng(seed)
    vocabulary = Vocabulary(size=config.vocab_size, special=frozenset({0, 1}))
    objective = PermutationLM(rate=0.4 if seed % 2 else 1 / 6)
    samples = []
    for length in rng.integers(1, 30, rng.integers(1, 7)):
        tokens = np.array([0, *rng.integers(2, config.vocab_size, length), 1])
        segments = np.sort(rng.integers(0, 2, len(tokens)))
        samples.append(objective.corrupt({"tokens": tokens, "segments": segments}, vocabulary, rng))
    return samples


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("training", [False, True])
def test_two_streams(seed: int, training: bool, tmp_path: Path) -> None:
    """The loss and every gradient of permutation LM, there told by perm_mask and target_mapping."""
    theirs, ours = twins(seed, training, tmp_path)
    samples = permuted(theirs.config, seed)
    if seed % 3 == 0:
        samples = [{name: value for name, value in sample.items() if name != "segments"} for sample in samples]
    batch = collate(samples)

    tokens, order, places = batch.ragged("tokens"), batch.ragged("order").pad(), batch.ragged("masked")
    # A predicted token sees what comes before it, any other those that are not predicted. In the content stream
    # `transformers` lets every token see itself in any case.
    seen = (order[:, None, :] < order[:, :, None]) | (order[:, None, :] == 0)
    mapping = torch.zeros(tokens.num_rows, places.longest, tokens.longest)
    rows = tokens.row_ids[places.values]
    mapping[rows, places.positions, tokens.positions[places.values]] = 1
    expected = theirs(
        tokens.pad(),
        attention_mask=tokens.with_values(torch.ones_like(tokens.values)).pad(),
        token_type_ids=batch.ragged("segments").pad() if "segments" in batch else None,
        perm_mask=(~seen).float(),
        target_mapping=mapping,
        labels=batch.ragged("masked_targets").pad(-100),
    )
    states = two_streams(ours).query_states(ours.encoder, batch)
    close(two_streams(ours).head(states), expected.logits[rows, places.positions])
    same_losses(ours, batch, theirs, expected, "xlnet")


@pytest.mark.parametrize("seed", range(3))
def test_folders_there_and_back(seed: int, tmp_path: Path) -> None:
    config = random_config(seed)
    inputs = {"token_type_ids": torch.arange(24).view(2, 12) % 2, "use_mems": False}
    torch.manual_seed(seed)
    reopened(shaken(transformers.XLNetLMHeadModel(config), seed), tmp_path / "lm", inputs)
    # What the second stream begins with belongs to the objective: an encoder alone is written without it.
    reopened(shaken(transformers.XLNetModel(config), seed), tmp_path / "encoder", inputs, absent="mask_emb")


def test_a_recipe_from_scratch_opens_there(tmp_path: Path) -> None:
    recipe = xlnet(SIZES["tiny"], vocab_size=300).changed({"encoder.stack.block.mixer.memory_length": 16})
    ours = Pretrained(Model.new(recipe, seed=1))
    assert ours.save(tmp_path) == []
    theirs = from_folder(transformers.XLNetLMHeadModel, tmp_path)
    ids = [1, 5, 9, 200]
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids]), output_hidden_states=True)
        close(torch.from_numpy(ours.hidden_states(ids)), torch.cat(expected.hidden_states))
        states = torch.from_numpy(ours.hidden_states(ids)[-1])
        close(two_streams(ours.model).head(states), expected.logits[0])
    same_again(ours, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("attn_type", "uni"), ("bi_data", True), ("clamp_len", 8), ("reuse_len", 4), ("d_head", 3)]
)
def test_settings_that_change_the_computation_are_refused(name: str, value: object, tmp_path: Path) -> None:
    transformers.XLNetLMHeadModel(random_config(0)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(FolderError, match=f"sets {name} to {value!r}"):
        bertie.load(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder.stack.block.mixer.scorer.segments": False},
        {"encoder.stack.block.mixer.scorer.dropout": 0.3},
        {"encoder.stack.block.mixer.bias": True},
        {"encoder.embeddings.norm_eps": 1e-12},
    ],
)
def test_what_it_cannot_express_keeps_our_names(changes: dict[str, object], tmp_path: Path) -> None:
    ours = Pretrained(Model.new(xlnet(SIZES["tiny"], vocab_size=50).changed(changes)))
    with pytest.warns(UserWarning, match="transformers has no such model"):
        ours.save(tmp_path)
    same_again(ours, tmp_path)
