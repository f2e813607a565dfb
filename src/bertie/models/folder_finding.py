"""Finds the local folder of a model: a model folder, a run folder, or a name on the Hugging Face hub."""

import re
from pathlib import Path

from huggingface_hub import snapshot_download

from bertie.errors import FolderError

WANTED_FILES = ["*.json", "*.txt", "*.safetensors", "*.model", "pytorch_model*.bin"]


def find_folder(source: str | Path) -> Path:
    if not str(source):
        raise FolderError("the name of the folder is empty")
    path = Path(source).expanduser()
    if path.is_dir():
        return path / "model" if not (path / "config.json").exists() and (path / "model").is_dir() else path
    if path.exists():
        raise FolderError("is a file, not a model folder", where=str(path), hint="give the folder that holds it")
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", str(source)) and not str(source).startswith("."):
        return _from_hub(str(source))
    raise FolderError("no such folder", where=str(path))


def lasting_name(source: str | Path) -> str:
    """A name that works from any folder: a local folder's absolute path, or a name on the hub."""
    return str(find_folder(source).resolve()) if Path(source).expanduser().is_dir() else str(source)


def _from_hub(name: str) -> Path:
    try:
        return Path(snapshot_download(name, allow_patterns=WANTED_FILES))
    except Exception as error:  # the hub's client raises many kinds of errors
        raise FolderError(
            f"is not a folder here, and the download from the hub failed ({type(error).__name__})",
            where=name,
            hint=f"check the path, or run `hf download {name}` on a machine with network access and copy the folder",
        ) from None
