"""Removes files of a corpus folder that its manifest does not name: what builds left that were killed, abandoned or
replaced. What has not exactly a name that a build gives is the user's, and stays."""

import json
import re
from pathlib import Path

from bertie.data.build.journal import FOLDER, LOCK
from bertie.data.manifest import FILE, Manifest
from bertie.errors import FolderError, UserError

_NUMBERED = re.compile(
    r"(?:shard-(?P<shard>\d{2,})-\d{6,}(?:-\d{6,})?\.arrow"
    r"|signatures-(?P<signatures>\d{2,})-(?:(?:documents|paragraphs)\.u64|near-(?:documents|paragraphs)\.npy))"
    r"(?:\.\d+\.part)?"
)
_MANIFEST_PART = re.compile(re.escape(FILE) + r"\.\d+\.part")


def check_target(folder: Path) -> None:
    """Refuses a folder of other things: nothing of theirs is to be mixed with a corpus, or replaced by it."""
    if folder.is_dir() and not is_ours(folder):
        hint = "name a folder that is new or empty"
        raise UserError("this folder has files that do not belong to a corpus", where=str(folder), hint=hint)


def is_ours(folder: Path) -> bool:
    """Whether there is a corpus, a build that goes on, what one left, or nothing at all."""
    build = folder / FOLDER
    if (build / LOCK).exists() or _has_manifest(folder):
        return True
    return all(
        _is_left(path.name) or (path == build and path.is_dir() and not any(path.iterdir()))
        for path in folder.iterdir()
    )


def _has_manifest(folder: Path) -> bool:
    """Of any version. Web pages and browser extensions have a file of this name too, with no number in it."""
    try:
        content = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and isinstance(content.get("version"), int)


def _is_left(name: str) -> bool:
    return bool(_NUMBERED.fullmatch(name) or _MANIFEST_PART.fullmatch(name))


def sweep(folder: Path) -> None:
    named: set[str] = set()
    if (folder / FILE).exists():
        try:
            manifest = Manifest.read(folder)
        except FolderError:
            return  # nobody knows what it names: a build that replaces it sweeps at its end
        named = {entry.name for entry in (*manifest.shards, *manifest.signatures)}
    for path in folder.iterdir():
        if _is_left(path.name) and path.name not in named and path.is_file():
            path.unlink()


def next_layer(folder: Path) -> int:
    """A number that no file of the folder has in its name, so that a new layer overwrites nothing."""
    found = (_NUMBERED.fullmatch(path.name) for path in folder.iterdir())
    numbers = [int(one["shard"] or one["signatures"]) for one in found if one]
    return max(numbers, default=-1) + 1
