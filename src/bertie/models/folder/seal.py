"""Keeps the digests of all files of a model folder in its bertie.json, and of bertie.json itself, and checks them.

A folder that another library wrote has none, and neither has one of theirs that replaced ours: then nothing is checked.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertie.disk import sealed, sha256_of
from bertie.errors import FolderError

FILES = "files"  # the digests, by name
RESTORE = "restore it from a copy"


def seal_folder(folder: Path, card: str) -> None:
    """Adds the digests of the files that are there to the file `card`, and the digest of the card."""
    content = json.loads((folder / card).read_text("utf-8"))
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / card]
    content[FILES] = {str(path.relative_to(folder)): sha256_of(path) for path in files}
    (folder / card).write_bytes(sealed(json.dumps(content, indent=2, ensure_ascii=False) + "\n"))


def check_folder(folder: Path, card: Mapping[str, Any]) -> None:
    """Refuses files that have other bytes than were written."""
    digests = card.get(FILES, {})
    for name, digest in digests.items() if isinstance(digests, dict) else ():
        path = folder / name
        if path.is_file() and sha256_of(path) != digest:  # what is missing, and needed, is reported where it is read
            hint = f"{RESTORE}; if you changed it on purpose, delete bertie.json"
            raise FolderError("has other bytes than were written", where=str(path), hint=hint)
