"""The run folder: options.json, log.jsonl, checkpoints/, and at the end model/ and summary.json. One run at a time.

config.toml has the options once more, as the command line names them.

`bertie.load(RUN)` opens RUN/model.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertie.disk import PART, lock_file, write_file, writing_to
from bertie.errors import FolderError, SpecError
from bertie.models.folder.saving import TEMPORARY
from bertie.train.folder.changed_options import changed_options

OPTIONS, CONFIG, SUMMARY = "options.json", "config.toml", "summary.json"
MODEL, CHECKPOINTS, LOCK = "model", "checkpoints", "lock"
LAST_GOOD = "last-good"  # a model from before a loss was not finite
VERSION = 1
AGAIN = "run it again: it continues"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder if needed, and keeps every other run out. A folder that holds something else is refused."""
    if folder.is_dir() and not (folder / OPTIONS).exists():
        # Without files that were being written when a kill came.
        strange = sorted(path.name for path in folder.iterdir() if path.name != LOCK and path.suffix != PART)
        if strange:
            what = f"the output folder is not empty ({strange[0]}), and it is not a run folder"
            raise FolderError(what, where=str(folder), hint="name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise FolderError(f"cannot be a run folder ({error.strerror})", where=str(folder)) from None
    with lock:
        lock_file(lock, folder)
        yield


def begun_precision(folder: Path) -> str | None:
    """The precision that the run in a folder computes in; None where there is no run."""
    try:
        found = read_object(folder / OPTIONS)["options"]["precision"]
    except (FolderError, KeyError, TypeError, OSError):
        return None
    return found if isinstance(found, str) else None


def begin(folder: Path, options: Mapping[str, Any], config: str | None = None) -> None:
    """Writes the options of a new run, or checks that an old one continues with its own."""
    now = json.loads(json.dumps({"version": VERSION, **options}))
    if not (folder / OPTIONS).exists():
        with writing_to(folder, AGAIN):
            write_file(folder / OPTIONS, (json.dumps(now, indent=1, ensure_ascii=False) + "\n").encode())
    elif different := changed_options(read_object(folder / OPTIONS), now):
        raise SpecError(
            f"the run was started with other options: {'; '.join(different)}",
            where=str(folder),
            hint="give the same ones to continue, or name a new folder",
        )
    if config is not None and not (folder / CONFIG).exists():
        with writing_to(folder, AGAIN):
            write_file(folder / CONFIG, config.encode())
    # What a kill left behind while a model was written.
    for name in (MODEL, LAST_GOOD):
        for path in (folder / name).glob(f"{TEMPORARY}*"):
            shutil.rmtree(path)


def digest_of(resolved: Mapping[str, Any]) -> str:
    """The digest of everything that decides a run's bits."""
    return hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()


def is_finished(folder: Path) -> bool:
    """Whether it has a summary, which is written last."""
    return (folder / SUMMARY).exists()


def write_summary(folder: Path, facts: Mapping[str, Any]) -> None:
    with writing_to(folder, AGAIN):
        write_file(folder / SUMMARY, (json.dumps(facts, indent=1) + "\n").encode())


def read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FolderError(f"cannot be read ({error})", where=str(path)) from None
    if not isinstance(content, dict):
        raise FolderError("is not a JSON object", where=str(path))
    return content
