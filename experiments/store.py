"""The store: a cell enters, its folder and its result leave. One folder for all experiments, outside git.

runs/experiments/whole-word-s1-0123456789abcdef/
    work/         what the commands made: a run folder, a corpus, ...
    log.txt       what they printed
    result.json   there when the cell is finished; remove the folder to have it done again
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from bertie.disk import write_file
from bertie.errors import FolderError
from experiments.cell import Cell, Result

ROOT = Path(__file__).resolve().parents[1]
RESULT, LOG, WORK, LOCK = "result.json", "log.txt", "work", "lock"


class Store:
    def __init__(self, folder: Path):
        self.folder = folder

    def home(self, cell: Cell) -> Path:
        seed = "" if cell.seed is None else f"-s{cell.seed}"
        plain = re.sub(r"[^\w.]+", "-", f"{cell.name} {cell.part}".strip())
        return self.folder / f"{plain}{seed}-{cell.digest}"

    def work(self, cell: Cell) -> Path:
        return self.home(cell) / WORK

    def log(self, cell: Cell) -> Path:
        return self.home(cell) / LOG

    def result(self, cell: Cell) -> Result | None:
        try:
            found: Result = json.loads((self.home(cell) / RESULT).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise FolderError(
                f"{RESULT} cannot be read ({error})", where=str(self.home(cell)), hint="remove it"
            ) from None
        return found

    def keep(self, cell: Cell, result: Result) -> None:
        write_file(self.home(cell) / RESULT, (json.dumps(result, indent=1) + "\n").encode())

    def state(self, cell: Cell) -> str:
        if self.result(cell) is not None:
            return "finished"
        return "begun" if self.work(cell).exists() else "new"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Gives the lock's handle, to be handed to every command: one whose runner was killed still holds it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / LOCK, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield handle
        except BlockingIOError:
            raise FolderError(
                "another experiment is at work here", where=str(self.folder), hint="wait for it, or stop it"
            ) from None
        finally:
            os.close(handle)


@cache
def code_digest() -> str:
    """Of all that bertie is made of."""
    whole = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".html"):
            whole.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return whole.hexdigest()[:12]
