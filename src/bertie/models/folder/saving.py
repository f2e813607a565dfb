"""Saves a model with its tokenizer and sentence settings as one folder, whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertie.errors import FolderError
from bertie.models.folder.folder import CARD, take_place, write_folder
from bertie.models.folder.folder_finding import local_path, reading
from bertie.models.folder.seal import seal_folder
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.models.sentence import SentenceSettings, write_sentence_settings
from bertie.text import Tokenizer

TEMPORARY = ".new-"  # starts the name of a folder that is being written inside the model's


def save_folder(
    folder: str | Path,
    model: Model,
    tokenizer: Tokenizer | None,
    settings: SentenceSettings | None,
    card: Mapping[str, Any],
) -> list[str]:
    """Writes a model folder that Hugging Face opens, in place of any model there. Returns what it cannot express."""
    if not str(folder):
        raise FolderError("the name of the folder is empty")
    folder = local_path(folder)
    with reading(folder):
        if folder.exists() and not folder.is_dir():
            raise FolderError("is a file, not a folder", where=str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(f"cannot be created ({error.strerror})", where=str(folder)) from None
    with TemporaryDirectory(dir=folder, prefix=TEMPORARY) as temporary:
        made = Path(temporary)
        notes = [write_folder(made, model, {**card, "tokenizer_sha256": tokenizer.digest if tokenizer else None})]
        if tokenizer is not None:
            tokenizer.save(made)
            for inner in made.glob("*/config.json"):  # a model inside the model can be opened alone, too
                tokenizer.save(inner.parent)
            notes.append(_shifted_positions(model.recipe, tokenizer.special.pad))
        if settings is not None:
            notes.append(write_sentence_settings(made, settings, model.recipe.encoder.output_width))
        seal_folder(made, CARD)
        take_place(made, folder)
    return [note for note in notes if note]


def _shifted_positions(recipe: Recipe, padding: int | None) -> str | None:
    """A warning where `transformers`, which counts positions from behind the padding id, would assume another id."""
    tables = recipe.encoder.embeddings
    offset = tables.table("positions").offset if "positions" in tables.fields else 0
    if not offset or padding is None or padding == offset - 1:
        return None
    return (
        f"positions start at {offset}, so transformers takes id {offset - 1} for padding, which is {padding} here: "
        "its outputs will differ wherever that token occurs in a text"
    )
