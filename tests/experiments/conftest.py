"""The experiments are scripts beside the package: their folder is found from the checkout."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from experiments.cell import Cell, Result  # noqa: E402
from experiments.runner import Runner  # noqa: E402
from experiments.store import Store  # noqa: E402
from experiments.task_sets import SOURCES  # noqa: E402

# Appends a line to a file each time that it runs, then writes the number it was given.
WRITE = """
import sys, pathlib
folder, number = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
with open(folder / "times.txt", "a") as file:
    file.write("x")
(folder / "number.txt").write_text(number)
"""


def read_number(folder: Path) -> Result:
    number = float((folder / "number.txt").read_text())
    return {
        "figures": {"number": number, "times": len((folder / "times.txt").read_text())},
        "curves": {"number": [[0, 1.0], [1, number]]},
    }


@pytest.fixture
def make_cell() -> Callable[..., Cell]:
    """`make_cell("base", 3, seed=1)`: a command that writes 3."""

    def make(name: str, number: float, seed: int | None = None, needs: dict[str, Cell] | None = None) -> Cell:
        command = ("{python}", "-c", WRITE.replace("{", "{{").replace("}", "}}"), "{folder}", str(number))
        return Cell(name, [command], read_number, seed=seed, needs=needs or {})

    return make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """All files that experiments name; what is in them is not real."""
    wikis = ("en_wiki.jsonl.gz", "zh_wiki.jsonl.gz")
    for file in {*wikis, *(file for source in SOURCES.values() for file in source.files.values())}:
        path = tmp_path / "shared" / "data" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
    return tmp_path / "shared"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def runner(store: Store, said: list[str]) -> Runner:
    def no_peers() -> Path:
        raise AssertionError("no command of these tests is a peer's")

    return Runner(store, no_peers, said.append)
