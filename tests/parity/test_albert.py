"""ALBERT beside `transformers`: real weights and random small models, evaluation and training, folders both ways."""

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
    from_scratch,
    opened,
    padded_inputs,
    reopened,
    same_losses,
    same_states,
)
from torch import nn

import bertie
from bertie.batch import Batch, Ragged
from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import albert
from bertie.nn.stack import Stack


def random_config(seed: int, **changes: Any) -> transformers.AlbertConfig:
    draw = random.Random(seed)
    heads, groups = draw.choice([1, 2, 3]), draw.choice([1, 2, 3])
    settings = {
        "vocab_size": draw.choice([50, 97]),
        "embedding_size": draw.choice([8, 12]),
        "hidden_size": heads * draw.choice([4, 8, 12]),
        "num_hidden_layers": groups * draw.choice([1, 2]),
        "num_hidden_groups": groups,
        "num_attention_heads": heads,
        "intermediate_size": draw.choice([16, 40]),
        "hidden_act": draw.choice(["gelu", "gelu_new", "relu"]),
        "max_position_embeddings": draw.choice([32, 40]),
        "type_vocab_size": draw.choice([1, 2, 3]),
        "layer_norm_eps": draw.choice([1e-12, 1e-5]),
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.0,
        "initializer_range": 0.2,
    }
    return transformers.AlbertConfig(**{**settings, **changes})


def blocks_of(pretrained: Pretrained) -> nn.ModuleList:
    stack = pretrained.model.encoder.stack
    assert isinstance(stack, Stack)
    return stack.blocks


def test_smiles_logits_equal_transformers(shared: Path) -> None:
    folder = shared / "weights/albert-smiles"
    theirs = transformers.AlbertForMaskedLM.from_pretrained(folder).eval()
    ours = bertie.load(folder)
    assert ours.report.clean, str(ours.report)
    generator = torch.Generator().manual_seed(0)
    ids, segments = (
        torch.randint(0, 591, (8, 60), generator=generator),
        torch.randint(0, 2, (8, 60), generator=generator),
    )
    with torch.inference_mode():
        expected = theirs(input_ids=ids, token_type_ids=segments).logits
        batch = Batch({"tokens": Ragged.of(list(ids)), "segments": Ragged.of(list(segments))})
        close(ours.model.heads["masked-lm"](ours.model.encoder(batch).states.values), expected.flatten(0, 1), 1e-4)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_random_configuration(seed: int, training: bool, tmp_path: Path) -> None:
    """Hidden states, both heads, the loss and every gradient; half of them with segments, some with an own table."""
    config = random_config(seed, tie_word_embeddings=seed < 6)
    torch.manual_seed(seed)
    theirs = transformers.AlbertForPreTraining(config).train(training)
    ours = opened(theirs, tmp_path)
    segments = config.type_vocab_size if seed % 2 else None
    batch = draw_batch(seed, config.vocab_size, config.max_position_embeddings, segments)
    order = batch.tensor("partner")
    expected = theirs(**padded_inputs(batch), sentence_order_label=order, output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["masked-lm"](states.values), batch.ragged("tokens").unpad(expected.prediction_logits).values)
    close(ours.heads["sentence-order"](ours.encoder.pool(states)), expected.sop_logits)
    same_losses(ours, batch, theirs, expected, "albert")


def test_tables_as_wide_as_the_states_are_mapped_all_the_same(tmp_path: Path) -> None:
    config = random_config(1, embedding_size=16, hidden_size=16, num_attention_heads=2)
    theirs = transformers.AlbertForPreTraining(config).eval()
    assert opened(theirs, tmp_path).recipe.encoder.embeddings.factor == 16
    reopened(theirs, tmp_path)


@pytest.mark.parametrize("architecture", ["AlbertModel", "AlbertForMaskedLM", "AlbertForPreTraining"])
def test_saved_folder_opens_in_transformers(architecture: str, tmp_path: Path) -> None:
    config = random_config(3, num_hidden_layers=4, num_hidden_groups=2)
    loaded = reopened(getattr(transformers, architecture)(config), tmp_path)
    blocks = blocks_of(loaded)
    assert [blocks[0].mixer is block.mixer for block in blocks] == [True, True, False, False]


def test_recipe_from_scratch_opens_in_transformers(tmp_path: Path) -> None:
    ours = from_scratch(albert(SIZES["tiny"], vocab_size=300), tmp_path)
    theirs = from_folder(transformers.AutoModelForPreTraining, tmp_path)
    batch = draw_batch(0, 300, 40, num_segments=2)
    order = batch.tensor("partner")
    with torch.inference_mode():
        expected = theirs(**padded_inputs(batch), sentence_order_label=order, output_hidden_states=True)
        states = same_states(ours, batch, expected)
        close(ours.loss(batch).loss(), expected.loss)
        close(ours.heads["masked-lm"](states.values), batch.ragged("tokens").unpad(expected.prediction_logits).values)
        close(ours.heads["sentence-order"](ours.encoder.pool(states)), expected.sop_logits)


@pytest.mark.parametrize("shared_part", ["mixer", "feed-forward"])
def test_sharing_of_one_part_alone_keeps_our_names_and_says_so(shared_part: str, tmp_path: Path) -> None:
    recipe = albert(SIZES["tiny"], vocab_size=300).changed({"encoder.stack.shared": (shared_part,)})
    ours = Pretrained(Model.new(recipe))
    with pytest.warns(UserWarning, match="transformers has no such model"):
        notes = ours.save(tmp_path)
    assert len(notes) == 1
    back = bertie.load(tmp_path)
    assert back.recipe == recipe
    assert back.digest == ours.digest
    blocks = blocks_of(back)
    assert (blocks[0].mixer is blocks[1].mixer) == (shared_part == "mixer")
    assert (blocks[0].feed_forward is blocks[1].feed_forward) == (shared_part == "feed-forward")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"inner_group_num": 2}, "sets inner_group_num to 2"),
        ({"num_hidden_groups": 2, "num_hidden_layers": 3}, "cannot be divided into 2 groups"),
        ({"position_embedding_type": "relative_key"}, "sets position_embedding_type"),
    ],
)
def test_settings_that_would_change_the_computation_are_refused(
    changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    transformers.AlbertModel(random_config(0)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(FolderError, match=told):
        bertie.load(tmp_path)
