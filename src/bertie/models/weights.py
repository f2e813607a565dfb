"""Reads and writes the weight files of a model folder: safetensors, sharded safetensors, legacy .bin.

No code from a file ever runs: .bin goes through torch's weights-only loader.
"""

import json
import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertie.disk import sync_file, write_failure
from bertie.errors import FolderError

SINGLE, INDEX, LEGACY = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
LEGACY_INDEX = "pytorch_model.bin.index.json"
BROKEN, AGAIN = "is broken or incomplete", "copy or download it again"


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, in float32."""
    for name in (SINGLE, INDEX, LEGACY_INDEX, LEGACY):
        if (folder / name).exists():
            return _read_sharded(folder / name) if name in (INDEX, LEGACY_INDEX) else read_file(folder / name)
    raise FolderError(
        "has no weights", where=str(folder), hint=f"one of {SINGLE}, {INDEX} or {LEGACY} should be beside config.json"
    )


def write_weights(folder: Path, tensors: dict[str, Tensor], file: str = SINGLE) -> None:
    """Writes a file of tensors, whole or not at all."""
    temporary = folder / f".{file}.part"
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        temporary.touch()
        mode = temporary.stat().st_mode  # as the user's umask has it; safetensors makes files for their owner alone
        save_file(plain, temporary, metadata={"format": "pt"})
        temporary.chmod(mode)
        with temporary.open("rb") as written:
            sync_file(written)
        temporary.replace(folder / file)
    except (OSError, SafetensorError) as error:
        raise write_failure(error, folder / file) from None
    finally:
        temporary.unlink(missing_ok=True)


def _read_sharded(index: Path) -> dict[str, Tensor]:
    try:
        files = json.loads(index.read_text("utf-8"))["weight_map"]
        shards = sorted(set(files.values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise FolderError(f"is not a readable index of shards ({error})", where=str(index)) from None
    tensors: dict[str, Tensor] = {}
    for shard in shards:
        path = index.parent / str(shard)
        if path.parent != index.parent or not path.is_file():
            raise FolderError(f"names the shard {shard!r}, which is not in the folder", where=str(index))
        tensors.update(read_file(path))
    if lost := set(files) - set(tensors):
        raise FolderError(f"names {len(lost)} tensors that are in no shard, first {min(lost)!r}", where=str(index))
    return tensors


def read_file(path: Path) -> dict[str, Tensor]:
    """All tensors of one file, in float32."""
    if path.suffix == ".safetensors":
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError) as error:
            raise FolderError(f"{BROKEN} ({error})", where=str(path), hint=AGAIN) from None
    else:
        tensors = _read_legacy(path)
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def _read_legacy(path: Path) -> dict[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader raises whatever a broken file happens to lead to
        if isinstance(error, pickle.UnpicklingError) and _is_pickle_of_objects(path, str(error)):
            raise FolderError(
                "contains more than tensors and is not opened, because that could run code",
                where=str(path),
                hint="ask its author for safetensors",
            ) from None
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FolderError(f"{BROKEN} ({reason})", where=str(path), hint=AGAIN) from None
    plain = isinstance(content, dict) and all(isinstance(name, str) for name in content)
    if not plain or not all(isinstance(value, Tensor) for value in content.values()):
        raise FolderError("is not a table of tensors by name", where=str(path), hint="save model.state_dict() alone")
    return content


def _is_pickle_of_objects(path: Path, reason: str) -> bool:
    """Whether it is more than broken: torch names an object that it refuses to make, or meets a foreign pickle."""
    with path.open("rb") as file:
        plain = file.read(1) == b"\x80" and len(file.read(8)) == 8
    return "GLOBAL" in reason or (plain and "operand" in reason)
