"""Cells: a configuration with one seed enters, a digest that names its result leaves.

A cell is some commands that fill a folder, and a function that reads the folder. What it needs is another cell, so that
preparation is done once and kept like any result.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from bertie.disk import sha256_of
from bertie.errors import InputError

Result = dict[str, Any]  # "figures": numbers by name; "curves": lists of [x, y] by name; "made": by whom and when
Command = tuple[str, ...]

AGAIN = "--overwrite"  # of a command that is run again; the result is the same without it
PYTHON, PEERS = "{python}", "{peers}"  # who runs a command: this environment, or that of the peers


@dataclass(frozen=True)
class Cell:
    """In a command `{folder}` is the cell's own folder, `{name}` the folder of a need or an input of that name."""

    name: str  # a row of the table; cells that differ in the seed alone share it
    commands: Sequence[Command]
    read: Callable[[Path], Result]  # the folder, when all commands are done
    seed: int | None = None
    needs: Mapping[str, "Cell"] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)  # files; their bytes are part of the configuration
    minutes: float = 0.0  # about how long it takes
    resumes: bool = True  # a command that is run again goes on in a folder that it left unfinished
    part: str = ""  # of its row, where several cells of one name and seed fill it

    @property
    def title(self) -> str:
        name = f"{self.name}: {self.part}" if self.part else self.name
        return name if self.seed is None else f"{name}, seed {self.seed}"

    @property
    def digest(self) -> str:
        """Of all that decides the result. The code does not: a result says by which it was made."""
        facts = {
            "name": self.name,
            "commands": [[word for word in command if word != AGAIN] for command in self.commands],
            "seed": self.seed,
            "needs": {name: cell.digest for name, cell in self.needs.items()},
            "inputs": {name: _file_digest(path) for name, path in self.inputs.items()},
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def bertie(*words: object) -> Command:
    """A command of bertie's own."""
    return (PYTHON, "-m", "bertie.cli.app", *map(str, words))


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """All cells and what they need, needs first, each once."""
    found: dict[str, Cell] = {}

    def visit(cell: Cell) -> None:
        if cell.digest not in found:
            for need in cell.needs.values():
                visit(need)
            found[cell.digest] = cell

    for cell in cells:
        visit(cell)
    return list(found.values())


@lru_cache(None)
def _file_digest(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        hint = "give the folder with real data with --data or $BERTIE_SHARED"
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), hint=hint) from None
