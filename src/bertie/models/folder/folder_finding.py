"""Finds the local folder of a model: a model folder, a run folder, or a name on the Hugging Face hub."""

import difflib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huggingface_hub import snapshot_download

from bertie.errors import FolderError

WANTED_FILES = ["*.json", "*.txt", "*.safetensors", "*.model", "pytorch_model*.bin"]
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
LONGEST_SHOWN = 200
RUN = "options.json"  # what every run folder has


def find_folder(source: str | Path) -> Path:
    if not str(source):
        raise FolderError("the name of the folder is empty")
    path = local_path(source)
    with reading(path):
        if path.is_dir():
            if (path / RUN).exists() and not any((path / name).exists() for name in ("config.json", "model")):
                what = "the run in this folder is not finished, so it has no model yet"
                raise FolderError(what, where=str(path), hint="run the command that started it again: it continues")
            return path / "model" if not (path / "config.json").exists() and (path / "model").is_dir() else path
        if path.exists():
            raise FolderError("is a file, not a model folder", where=str(path), hint="give the folder that holds it")
        if os.path.lexists(path):
            raise FolderError("is a link that leads nowhere", where=str(path))
    if HUB_NAME.fullmatch(str(source)):
        return _from_hub(str(source), nearest_name(path))
    raise _no_such_folder(path, nearest_name(path))


def local_path(source: str | Path) -> Path:
    """The path that a user gives, with ~ in it; an error where no path can have such a name."""
    if "\0" in str(source):
        raise FolderError("a name cannot contain the character NUL", where=shortened(source).replace("\0", "\\0"))
    try:
        str(source).encode("utf-8")
        return Path(source).expanduser()
    except UnicodeEncodeError:  # libraries that read weights take no other names
        raise FolderError("the name is not UTF-8", where=shortened(source), hint="rename the folder") from None
    except RuntimeError:  # ~ of a user that does not exist
        raise FolderError("there is no such home folder", where=shortened(source), hint="check the path") from None


def nearest_name(path: Path) -> Path | None:
    """An existing folder beside a missing one that has a similar name. Where a folder above is missing already, that
    one is corrected."""
    for parent in path.parents:
        missing = path.relative_to(parent).parts[0] if path != parent else ""
        names: list[str] = []
        with suppress(OSError):
            names = [one.name for one in parent.iterdir() if one.is_dir()]
        if names:
            if missing in names:
                return None
            close = difflib.get_close_matches(missing[:LONGEST_SHOWN], names, n=1, cutoff=0.75)
            if not close:
                return None
            whole = parent.joinpath(close[0], *path.relative_to(parent).parts[1:])
            return whole if whole.is_dir() else parent / close[0]
        with suppress(OSError):
            if parent.exists():
                return None
    return None


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turns what the system says of a folder or of a file in it into one sentence: no access, a loop of links, a name
    that is too long."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else str(folder)
        raise FolderError(f"cannot be read ({error.strerror or error})", where=shortened(where)) from None


def shortened(path: str | Path) -> str:
    """A path in a message: at most a few lines."""
    text = str(path)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def lasting_name(source: str | Path) -> str:
    """A name that works from any folder: a local folder's absolute path, or a name on the hub."""
    return str(find_folder(source).resolve()) if local_path(source).is_dir() else str(source)


def _no_such_folder(path: Path, nearest: Path | None) -> FolderError:
    hint = f"did you mean {shortened(nearest)}?" if nearest else "check the path"
    return FolderError("there is no such folder", where=shortened(path), hint=hint)


def _from_hub(name: str, nearest: Path | None) -> Path:
    """A folder of a similar name here makes a mistyped path more likely than a name on the hub that is not there."""
    try:
        return Path(snapshot_download(name, allow_patterns=WANTED_FILES))
    except Exception as error:  # the hub's client raises many kinds of errors
        if nearest is not None:
            raise _no_such_folder(Path(name), nearest) from None
        raise FolderError(
            f"is not a folder here, and the download from the hub failed ({type(error).__name__})",
            where=shortened(name),
            hint=f"check the path, or run `hf download {name}` on a machine with network access and copy the folder",
        ) from None
