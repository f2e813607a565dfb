"""A corpus folder in, the same folder without files that its manifest does not name out: what builds left behind that
were killed, given up or replaced."""

import re
from pathlib import Path

from bertie.data.manifest import FILE, Manifest
from bertie.errors import FolderError

_NUMBERED = re.compile(r"(?:shard|signatures)-(\d+)-.*")


def sweep(folder: Path) -> None:
    named: set[str] = set()
    if (folder / FILE).exists():
        try:
            manifest = Manifest.read(folder)
        except FolderError:
            return  # nobody knows what it names: a build that replaces it sweeps at its end
        named = {entry.name for entry in (*manifest.shards, *manifest.signatures)}
    for path in folder.iterdir():
        if path.suffix == ".part" or (_NUMBERED.fullmatch(path.name) and path.name not in named):
            path.unlink()


def next_layer(folder: Path) -> int:
    """A number that no file of the folder has in its name, so that a new layer overwrites nothing."""
    numbers = [int(found[1]) for path in folder.iterdir() if (found := _NUMBERED.fullmatch(path.name))]
    return max(numbers, default=-1) + 1
