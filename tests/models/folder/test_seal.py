"""Folders that bertie wrote: a changed byte is refused, whichever file it is in."""

import json
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import bertie
from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

TOKENIZER = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = Model.new(bert(Size(depth=1, width=8, num_heads=2), TOKENIZER.size))
    Pretrained(model, TOKENIZER).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_changed_byte_in_any_file_is_refused_or_announced(folder: Path) -> None:
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        for place in range(3, len(content), len(content) // 8):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with warnings.catch_warnings(record=True) as caught, suppress(FolderError):
                warnings.simplefilter("always")
                bertie.load(folder)
                said = [str(warning.message) for warning in caught]  # config.json may be another program's by now
                assert path.name == "config.json" and "changed since bertie wrote it" in "".join(said), path.name
        path.write_bytes(content)
    assert bertie.load(folder).report.clean


def test_what_was_opened_is_saved_with_digests_of_its_own(folder: Path) -> None:
    bertie.load(folder).save(folder.parent / "copy")
    assert bertie.load(folder.parent / "copy").report.clean
    card = json.loads((folder.parent / "copy" / "bertie.json").read_text())
    assert card["files"].keys() == {path.name for path in folder.iterdir()} - {"bertie.json"}


def test_a_folder_without_digests_opens(folder: Path) -> None:
    """As other libraries write it."""
    (folder / "bertie.json").unlink()
    assert bertie.load(folder).report.clean
    shutil.rmtree(folder)
