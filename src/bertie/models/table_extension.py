"""Extends a model by rows for new pieces of its tokenizer; all other weights stay the same."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bertie.models.folder.folder_finding import find_folder
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.models.recipe import Recipe
from bertie.reporting.events import OnEvent, ignore, message
from bertie.text import load_tokenizer
from bertie.text.vocab.extension import Extension, extend_tokenizer
from bertie.text.vocab.output import check_out, new_folder
from bertie.text.vocab.word_sources import WordSources


@dataclass(frozen=True)
class ExtensionReport:
    words: tuple[str, ...]  # as the tokenizer sees them
    num_pieces: int  # new ones; more than words where a merge needs a step between
    size: int  # of the vocabulary now
    skipped: Mapping[str, str]  # word -> why it was not added

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def extend_folder(
    base: str | Path, wanted: WordSources, out: Path, overwrite: bool = False, on_event: OnEvent = ignore
) -> ExtensionReport:
    """Writes a copy of a model folder, or of a tokenizer's folder, whose tokenizer knows more words."""
    check_out(out, overwrite)
    alone = Path(base).is_dir() and not (find_folder(base) / "config.json").exists()
    pretrained = None if alone else load(base)
    tokenizer = load_tokenizer(base) if pretrained is None else pretrained.tokenizer
    extension = extend_tokenizer(tokenizer, wanted.read(tokenizer, on_event))
    with new_folder(out, overwrite) as folder:
        if pretrained is None:
            extension.tokenizer.save(folder)
        else:
            for note in extend_model(pretrained, extension).save(folder):
                on_event(message(note))
    return ExtensionReport(extension.words, len(extension.origins), extension.tokenizer.size, dict(extension.skipped))


def extend_model(pretrained: Pretrained, extension: Extension) -> Pretrained:
    """Returns the model with the extended tokenizer; `pretrained` itself does not change."""
    size = max(pretrained.recipe.vocab_size, extension.tokenizer.size)
    model = extend_rows(pretrained.model, extension.origins, size)
    return Pretrained(model, extension.tokenizer, pretrained.settings, pretrained.report, pretrained.card)


def extend_rows(model: Model, origins: Mapping[int, Sequence[int]], size: int) -> Model:
    """Returns the model with `size` rows in every tensor that has one per piece; a new row is the mean of the rows of
    the pieces that it was split into before.

    Rows beyond the tokenizer's ids, which some models have, are used first.
    """
    recipe = resized(model.recipe, size)
    with torch.device("meta"):
        extended = Model(recipe, replace(model.vocabulary, size=size))
    by_size = vocabulary_parameters(model.recipe)
    made: dict[nn.Parameter, nn.Parameter] = {}
    old = dict(model.named_parameters())
    for name, parameter in extended.named_parameters():
        values = old[name].detach().clone()
        if name in by_size:
            grown = values.new_zeros(size, *values.shape[1:])
            grown[: len(values)] = values
            for id, pieces in origins.items():
                grown[id] = values[list(pieces)].mean(0)
            values = grown
        made[parameter] = nn.Parameter(values)
    for part in extended.modules():  # tied parameters are one and stay one
        for name, own in list(part._parameters.items()):
            if own is not None:
                part._parameters[name] = made[own]
    return extended.train(model.training)


def resized(recipe: Recipe, size: int) -> Recipe:
    embeddings = recipe.encoder.embeddings
    tables = tuple(table.replace(size=size) if table.field == "tokens" else table for table in embeddings.tables)
    return recipe.replace(encoder=recipe.encoder.replace(embeddings=embeddings.replace(tables=tables)))


def vocabulary_parameters(recipe: Recipe) -> set[str]:
    """Names of the parameters with one row per piece: those that a larger vocabulary would change."""
    with torch.device("meta"):
        now, larger = Model(recipe), Model(resized(recipe, recipe.vocab_size + 1))
    shapes = {name: parameter.shape for name, parameter in larger.named_parameters()}
    return {name for name, parameter in now.named_parameters() if parameter.shape != shapes[name]}
