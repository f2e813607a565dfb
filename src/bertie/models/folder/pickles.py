"""Looks into a pickle without opening it: which objects of which modules it would make."""

import io
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path

LONGEST = 16 * 2**20  # bytes that are looked at
NUM_PICKLES = 5  # torch's older files are several pickles, one after another
OF_TENSORS = ("torch", "collections")  # modules whose objects a table of tensors consists of
STRINGS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING")


def names_objects(path: Path) -> bool:
    """Whether the pickle in a file names objects that are no parts of tensors: to make them could run code."""
    try:
        return any(module.partition(".")[0] not in OF_TENSORS for module in _modules(io.BytesIO(_pickle_in(path))))
    except Exception:  # its readers raise whatever broken bytes happen to lead to
        return False


def _pickle_in(path: Path) -> bytes:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            name = next((name for name in archive.namelist() if name.endswith("data.pkl")), "")
            with archive.open(name) as file:
                return file.read(LONGEST)
    with path.open("rb") as file:
        return file.read(LONGEST)


def _modules(file: io.BytesIO) -> Iterator[str]:
    """The modules of all objects that pickles name, as far as these can be read."""
    for _ in range(NUM_PICKLES):
        strings: list[str] = []
        for opcode, argument, _ in pickletools.genops(file):
            if opcode.name in STRINGS:
                strings = [*strings[-1:], str(argument)]
            elif opcode.name in ("GLOBAL", "INST", "STACK_GLOBAL"):
                named = str(argument).split(" ") if argument is not None else strings
                if len(named) == 2 and all(part.isidentifier() for name in named for part in name.split(".")):
                    yield named[0]
            elif opcode.name in ("EXT1", "EXT2", "EXT4"):
                yield opcode.name
