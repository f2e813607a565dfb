"""ELECTRA beside `transformers`: discriminators, generators and both together, random and small; folders both ways."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from tests.parity.comparing import (
    close,
    draw_batch,
    from_folder,
    from_scratch,
    gradient,
    livelier,
    opened,
    padded_inputs,
    reopened,
    same_gradients,
    same_losses,
    same_states,
)
from torch import Tensor

import bertie
from bertie.batch import Batch, Ragged
from bertie.models.folder.placement import place_tensors
from bertie.models.layouts import LAYOUTS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import electra
from bertie.objectives.replaced_tokens import ReplacedTokens

VOCAB_SIZE, MASK = 300, 4
GENERATOR = "heads.replaced-tokens.generator."


def random_config(seed: int, **changes: Any) -> transformers.ElectraConfig:
    """Every third has tables as wide as the states, and so no projection of them."""
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3])
    width = heads * draw.choice([4, 8])
    settings = {
        "vocab_size": draw.choice([50, 97]),
        "embedding_size": width if seed % 3 == 0 else 12 + seed,
        "hidden_size": width,
        "num_hidden_layers": draw.choice([1, 2, 3]),
        "num_attention_heads": heads,
        "intermediate_size": draw.choice([16, 40]),
        "hidden_act": draw.choice(["gelu", "gelu_new", "relu"]),
        "max_position_embeddings": draw.choice([32, 40]),
        "type_vocab_size": draw.choice([1, 2]),
        "layer_norm_eps": draw.choice([1e-12, 1e-5]),
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.2,
    }
    return transformers.ElectraConfig(**{**settings, **changes})


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_random_discriminator(seed: int, training: bool, tmp_path: Path) -> None:
    """Hidden states, logits, the loss and every gradient; half of them with segments."""
    config = random_config(seed)
    torch.manual_seed(seed)
    theirs = transformers.ElectraForPreTraining(config).train(training)
    ours = opened(theirs, tmp_path)
    segments = config.type_vocab_size if seed % 2 else None
    batch = draw_batch(seed, config.vocab_size, config.max_position_embeddings, segments)
    tokens = batch.ragged("tokens")
    replaced = tokens.with_values(tokens.values % 2)
    expected = theirs(**{**padded_inputs(batch), "labels": replaced.pad()}, output_hidden_states=True)
    states = same_states(ours, batch, expected)
    verdicts = ours.get_submodule("heads.replaced-tokens.head")(states.values)
    close(verdicts, tokens.unpad(expected.logits).values)
    loss = F.binary_cross_entropy_with_logits(verdicts, replaced.values.float())
    close(loss, expected.loss)
    loss.backward()
    expected.loss.backward()
    same_gradients(ours, theirs, "electra")


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_random_generator(seed: int, training: bool, tmp_path: Path) -> None:
    """The head's activation is always gelu, whatever the encoder's is."""
    config = random_config(seed, tie_word_embeddings=seed < 4)
    torch.manual_seed(seed)
    theirs = transformers.ElectraForMaskedLM(config).train(training)
    ours = opened(theirs, tmp_path)
    segments = config.type_vocab_size if seed % 2 else None
    batch = draw_batch(seed, config.vocab_size, config.max_position_embeddings, segments)
    expected = theirs(**padded_inputs(batch), output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["masked-lm"](states.values), batch.ragged("tokens").unpad(expected.logits).values)
    same_losses(ours, batch, theirs, expected, "electra")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("architecture", ["ElectraModel", "ElectraForPreTraining", "ElectraForMaskedLM"])
def test_saved_folder_opens_in_transformers(architecture: str, seed: int, tmp_path: Path) -> None:
    loaded = reopened(getattr(transformers, architecture)(random_config(seed)), tmp_path)
    assert not (tmp_path / "ours/generator").exists()
    if architecture == "ElectraForPreTraining":
        (objective,) = loaded.recipe.objectives
        assert isinstance(objective, ReplacedTokens)
        assert objective.generator is None


@pytest.fixture
def both(tmp_path: Path) -> Model:
    """Discriminator and generator with lively weights, saved in `tmp_path`."""
    recipe = electra(SIZES["tiny"], VOCAB_SIZE)
    (objective,) = recipe.objectives
    assert isinstance(objective, ReplacedTokens)
    assert objective.generator is not None
    lively = objective.replace(generator=livelier(objective.generator))
    model = from_scratch(recipe.replace(objectives=(lively,)), tmp_path)
    with torch.no_grad():  # padding is never drawn: `transformers` would give its row no gradient
        model.get_parameter(f"{GENERATOR}heads.masked-lm.bias")[0] = -30
    Pretrained(model).save(tmp_path)
    return model


def test_two_folders_come_back_as_one_model(both: Model, tmp_path: Path) -> None:
    back = bertie.load(tmp_path)
    assert back.report.clean
    assert back.recipe == both.recipe
    assert back.digest == Pretrained(both).digest
    tied = [f"embeddings.tables.{field}.weight" for field in ("tokens", "positions", "segments")]
    for name in [*tied, "embeddings.norm.weight", "embeddings.norm.bias"]:
        parameter = back.model.get_parameter(f"encoder.{name}")
        assert back.model.get_parameter(f"{GENERATOR}encoder.{name}") is parameter
    table = back.model.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert back.model.get_parameter(f"{GENERATOR}heads.masked-lm.weight") is table


def test_the_generator_s_folder_is_one_of_its_own(both: Model, tmp_path: Path) -> None:
    alone = bertie.load(tmp_path / "generator")
    assert alone.report.clean
    assert list(alone.model.heads) == ["masked-lm"]
    for name, parameter in alone.model.named_parameters():
        assert torch.equal(parameter, both.get_parameter(GENERATOR + name))
    assert json.loads((tmp_path / "generator/config.json").read_text())["architectures"] == ["ElectraForMaskedLM"]


def test_loss_and_every_gradient_of_both(both: Model, tmp_path: Path) -> None:
    """Generator, what it draws, discriminator, and the weighted sum of their losses."""
    generator = from_folder(transformers.AutoModelForMaskedLM, tmp_path / "generator")
    discriminator = from_folder(transformers.AutoModelForPreTraining, tmp_path)
    assert type(discriminator) is transformers.ElectraForPreTraining
    batch = electra_batch(3)
    tokens, masked = batch.ragged("tokens"), batch.tensor("masked")

    seen = batch.with_fields({"tokens": batch.ragged("gaps")})
    guessed = generator(**padded_inputs(seen))
    sums = tokens.unpad(guessed.logits).values[masked].detach().softmax(-1).cumsum(-1)
    ids = (sums < batch.tensor("dice")[:, None]).sum(-1)  # the first whose summed probability passes the die
    written = tokens.with_values(tokens.values.index_put((masked,), ids))
    replaced = written.with_values((written.values != tokens.values).long())
    assert 0 < int(replaced.values.sum()) < len(tokens.values)
    inputs = {**padded_inputs(batch.with_fields({"tokens": written})), "labels": replaced.pad()}
    judged = discriminator(**inputs)
    guessed.loss.backward()
    (50 * judged.loss).backward()

    report = both.loss(batch)
    report.loss().backward()
    close(report.losses["masked_lm"].mean, guessed.loss)
    close(report.losses["replaced_tokens"].mean, judged.loss)
    own = dict(both.named_parameters(remove_duplicate=False))
    wanted: dict[Tensor, Tensor] = {}  # what is tied is told twice, and adds up
    theirs = {"": dict(discriminator.named_parameters()), "generator": dict(generator.named_parameters())}
    entries, copies = place_tensors(both, LAYOUTS["electra"], both.recipe)
    for entry in [*entries, *(copy for copy in copies if copy.theirs[0].startswith("generator/"))]:
        places, names = zip(*(name.rpartition("/")[::2] for name in entry.theirs), strict=True)
        gradients = [gradient(theirs[place][name]) for place, name in zip(places, names, strict=True)]
        told = entry.join(gradients, own[entry.ours].shape)
        wanted[own[entry.ours]] = wanted.get(own[entry.ours], 0) + told
    assert set(wanted) == set(both.parameters())
    for parameter, told in wanted.items():
        close(gradient(parameter), told, 1e-4)


def electra_batch(seed: int) -> Batch:
    batch = draw_batch(seed, VOCAB_SIZE, 40, num_segments=2)
    tokens, masked = batch.ragged("tokens"), batch.ragged("masked")
    gaps = tokens.values.index_fill(0, masked.values, MASK)
    dice = torch.rand(len(masked.values), generator=torch.Generator().manual_seed(seed))
    return batch.with_fields({"gaps": tokens.with_values(gaps), "dice": Ragged(dice, masked.lengths)})
