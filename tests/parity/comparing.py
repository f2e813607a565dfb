"""What the parity tests of several families share: the same rows for both sides, and what must be equal.

Padding is theirs alone. Rows hold no id below 3, as `transformers` gives the rows of padding no gradient.
"""

import json
import random
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

import bertie
from bertie.batch import Batch, Pointers, Ragged
from bertie.models.folder.folder import open_folder
from bertie.models.folder.placement import place_tensors
from bertie.models.layouts import LAYOUTS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.nn.encoder import EncoderSpec

FIRST_ID = 3
WITHOUT_DROPOUT = {
    "embeddings.dropout": 0.0,
    "stack.block.residual.dropout": 0.0,
    "stack.block.mixer.scorer.dropout": 0.0,
}


def close(ours: Tensor, theirs: Tensor, limit: float = 1e-5) -> None:
    assert ours.shape == theirs.shape
    assert float((ours - theirs).detach().abs().max()) <= limit


def livelier(encoder: EncoderSpec) -> EncoderSpec:
    """Without dropout, and with first weights so large that a mistake shows."""
    return encoder.changed({**WITHOUT_DROPOUT, "initial_std": 0.1})


def shaken(theirs: Any, seed: int = 0) -> Any:
    """With other biases and norms than zeros and ones, which would hide that one was taken for another."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return theirs


# --- the same rows for both


def draw_batch(seed: int, vocab_size: int, longest: int, num_segments: int | None = None) -> Batch:
    """Rows of different lengths; every third token is to be told, and of every row a label."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    lengths = [draw.randint(1, longest) for _ in range(draw.randint(2, 7))]
    tokens = Ragged.of([torch.randint(FIRST_ID, vocab_size, (length,), generator=generator) for length in lengths])
    masked = (tokens.positions % 3 == 0).nonzero()[:, 0]
    counts = torch.bincount(tokens.row_ids[masked], minlength=len(lengths))
    fields: dict[str, Ragged | Tensor] = {
        "tokens": tokens,
        "masked": Pointers(masked, counts),
        "masked_targets": Ragged(tokens.values[masked], counts),
        "partner": torch.arange(len(lengths)) % 2,
    }
    if num_segments is not None:
        segments = torch.randint(0, num_segments, tokens.values.shape, generator=generator)
        fields["segments"] = tokens.with_values(segments)
    return Batch(fields)


def padded_inputs(batch: Batch, padding: int = 0) -> dict[str, Tensor]:
    """What `transformers` is given: rectangles, and labels where something is to be told."""
    tokens = batch.ragged("tokens")
    labels = torch.full_like(tokens.values, -100)
    labels[batch.tensor("masked")] = batch.tensor("masked_targets")
    inputs = {
        "input_ids": tokens.pad(padding),
        "attention_mask": tokens.with_values(torch.ones_like(tokens.values)).pad(),
        "labels": tokens.with_values(labels).pad(-100),
    }
    if "segments" in batch:
        inputs["token_type_ids"] = batch.ragged("segments").pad()
    return inputs


def opened(theirs: transformers.PreTrainedModel, folder: Path) -> Model:
    """Their model in bertie, in the same mode."""
    theirs.save_pretrained(folder)
    found = open_folder(folder)
    assert found.report.clean, str(found.report)
    return found.model.train(theirs.training)


# --- what must be equal


def same_states(ours: Model, batch: Batch, expected: Any) -> Ragged:
    """Of every layer. `expected` is what their model gave. Returns the last."""
    encoded = ours.encoder(batch, keep_layers=True)
    for own, other in zip(encoded.layers, expected.hidden_states, strict=True):
        close(own, batch.ragged("tokens").unpad(other).values)
    return encoded.states


def same_losses(ours: Model, batch: Batch, theirs: transformers.PreTrainedModel, expected: Any, kind: str) -> None:
    """The loss and every gradient."""
    expected.loss.backward()
    loss = ours.loss(batch).loss()
    loss.backward()
    close(loss, expected.loss)
    same_gradients(ours, theirs, kind)


def same_gradients(ours: Model, theirs: transformers.PreTrainedModel, kind: str) -> None:
    own, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
    entries, _ = place_tensors(ours, LAYOUTS[kind], ours.recipe)
    assert not [entry.ours for entry in entries if "/" in entry.theirs[0]], "all have a name there"
    for entry in entries:
        wanted = entry.join([gradient(other[name]) for name in entry.theirs], own[entry.ours].shape)
        close(gradient(own[entry.ours]), wanted, 1e-4)


def gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def reopened(
    theirs: transformers.PreTrainedModel, folder: Path, inputs: dict[str, Any] | None = None, absent: str | None = None
) -> Pretrained:
    """Saved there, opened and saved here, opened there and here: nothing is lost, nothing added, all is equal.

    `inputs` are further ones for rows of 12 tokens; `absent` is a tensor that bertie does not write.
    """
    theirs.save_pretrained(folder / "theirs")
    loaded = bertie.load(folder / "theirs")
    assert loaded.report.clean, str(loaded.report)
    assert loaded.save(folder / "ours") == []
    assert json.loads((folder / "ours/config.json").read_text())["architectures"] == [type(theirs).__name__]
    again = from_folder(type(theirs), folder / "ours", absent)
    ids = torch.arange(FIRST_ID, FIRST_ID + 24).view(2, 12) % (theirs.config.vocab_size - FIRST_ID) + FIRST_ID
    with torch.inference_mode():
        answers = [model.eval()(ids, **(inputs or {})).to_tuple() for model in (theirs, again)]
        for own, other in zip(*answers, strict=True):
            assert torch.equal(own, other)
    same_again(loaded, folder / "ours")
    return loaded


def same_again(saved: Pretrained, folder: Path) -> None:
    back = bertie.load(folder)
    assert back.report.clean, str(back.report)
    assert back.recipe == saved.recipe
    assert back.digest == saved.digest


def from_folder(model: Any, folder: Path, absent: str | None = None) -> transformers.PreTrainedModel:
    """A folder that bertie wrote, in `transformers`, which misses nothing in it but what is said to be absent."""
    theirs, told = model.from_pretrained(folder, output_loading_info=True)
    assert set(told["missing_keys"]) == ({absent} if absent else set()), told
    assert not told["unexpected_keys"] and not told["mismatched_keys"], told
    found = theirs.eval()
    assert isinstance(found, transformers.PreTrainedModel)
    return found


def from_scratch(recipe: Recipe, folder: Path) -> Model:
    """A recipe's model with lively weights, saved in the folder."""
    model = Model.new(recipe.replace(encoder=livelier(recipe.encoder)), seed=1).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.1)
    assert Pretrained(model).save(folder) == []
    return model
