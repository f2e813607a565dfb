"""The run folder: options.json, log.jsonl, checkpoints/, and at the end model/ and summary.json. One run at a time.

config.toml says the options once more, in the words of the command line.

`bertie.load(RUN)` opens RUN/model.
"""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertie.data.manifest import write_whole
from bertie.errors import FolderError, SpecError
from bertie.models.pretrained import PART
from bertie.train.options import differences

OPTIONS, CONFIG, SUMMARY = "options.json", "config.toml", "summary.json"
MODEL, CHECKPOINTS, LOCK = "model", "checkpoints", "lock"
LAST_GOOD = "last-good"  # a model from before a loss was no longer a number
VERSION = 1


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder where it is not there, and keeps every other run out. One of something else stays as it is."""
    if folder.is_dir() and not (folder / OPTIONS).exists():
        refuse_strange(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise FolderError(f"cannot be a run folder ({error.strerror})", where=str(folder)) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FolderError(
                "another run is writing here", where=str(folder), hint="wait for it, or stop it"
            ) from None
        yield


def begin(folder: Path, options: Mapping[str, Any], config: str | None = None) -> None:
    """Writes the options of a new run, or sees to it that an old one goes on under its own."""
    _begin(folder, options)
    if config is not None and not (folder / CONFIG).exists():
        write_whole(folder / CONFIG, config.encode())


def _begin(folder: Path, options: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps({"version": VERSION, **options}))
    if not (folder / OPTIONS).exists():
        write_whole(folder / OPTIONS, (json.dumps(now, indent=1, ensure_ascii=False) + "\n").encode())
        return
    if told := differences(read_object(folder / OPTIONS), now):
        more = f" (and {len(told) - 5} more)" if len(told) > 5 else ""
        raise SpecError(
            f"the run was begun with other options: {'; '.join(told[:5])}{more}",
            where=str(folder),
            hint="give the same ones to go on, or name a new folder",
        )


def refuse_strange(folder: Path) -> None:
    strange = sorted(path.name for path in folder.iterdir() if path.name != LOCK and not _is_part(path))
    if strange:
        what = f"is no run folder, and is not empty ({strange[0]})"
        raise FolderError(what, where=str(folder), hint="name a new folder")


def sweep(folder: Path) -> None:
    """What a kill left behind while a model was written."""
    for name in (MODEL, LAST_GOOD):
        for path in (folder / name).glob(f"{PART}*"):
            shutil.rmtree(path)


def digest_of(resolved: Mapping[str, Any]) -> str:
    """Of all that decides a run's bits."""
    return hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()


def is_finished(folder: Path) -> bool:
    """The summary is written last."""
    return (folder / SUMMARY).exists()


def write_summary(folder: Path, facts: Mapping[str, Any]) -> None:
    write_whole(folder / SUMMARY, (json.dumps(facts, indent=1) + "\n").encode())


def read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FolderError(f"cannot be read ({error})", where=str(path)) from None
    if not isinstance(content, dict):
        raise FolderError("is not a JSON object", where=str(path))
    return content


def _is_part(path: Path) -> bool:
    """A file that was being written when a kill came."""
    return path.suffix == ".part"
