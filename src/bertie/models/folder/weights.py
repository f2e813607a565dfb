"""Reads and writes the weight files of a model folder: safetensors, sharded safetensors, legacy .bin.

No code from a file ever runs: .bin goes through torch's weights-only loader. No file takes more memory than it has
bytes, or twice that where its numbers are widened to float32.
"""

import pickle
import struct
import zipfile
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertie.disk import sync_file, write_failure
from bertie.errors import FolderError
from bertie.json_files import LARGEST_VOCABULARY, check_regular, read_object
from bertie.machine import memory_bytes
from bertie.models.folder.pickles import names_objects
from bertie.reporting.quantities import format_bytes

SINGLE, INDEX, LEGACY = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
LEGACY_INDEX = "pytorch_model.bin.index.json"
BROKEN, AGAIN = "is broken or incomplete", "copy or download it again"
LARGEST_HEADER = 32 * 2**20  # of safetensors, in bytes; a hundred thousand tensors take half of it
MOST_SHARED = 8  # times that the numbers of a legacy file may be shared, on average; tied weights share them twice
ZIP = b"PK\x03\x04"


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, in float32."""
    for name in (SINGLE, INDEX, LEGACY_INDEX, LEGACY):
        if (folder / name).exists():
            return _read_sharded(folder / name) if name in (INDEX, LEGACY_INDEX) else read_file(folder / name)
    raise FolderError(
        "has no weights", where=str(folder), hint=f"one of {SINGLE}, {INDEX} or {LEGACY} should be beside config.json"
    )


def check_finite(name: str, tensor: Tensor, where: str) -> None:
    """Refuses a tensor with NaN or infinite numbers: every answer of the model would be NaN."""
    # A sum is the fastest pass over the numbers. Finite ones may also add up to more than float32 holds.
    if tensor.is_floating_point() and not tensor.sum().isfinite() and not tensor.isfinite().all():
        what = f"{name} holds numbers that are NaN or infinite"
        raise FolderError(what, where=where, hint="the file is damaged, or the training that wrote it diverged")


def write_weights(folder: Path, tensors: dict[str, Tensor], file: str = SINGLE) -> None:
    """Writes a file of tensors, whole or not at all."""
    temporary = folder / f".{file}.part"
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
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
    files = read_object(index, LARGEST_VOCABULARY).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(shard, str) for shard in files.values()):
        what = "is not a readable index of shards (`weight_map` should name the file of each tensor)"
        raise FolderError(what, where=str(index), hint=AGAIN)
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(files.values())):
        path = index.parent / shard
        if Path(shard).name != shard or "\0" in shard or not path.is_file():
            raise FolderError(f"names the shard {shard[:100]!r}, which is not in the folder", where=str(index))
        tensors.update(read_file(path))
    if lost := set(files) - set(tensors):
        raise FolderError(f"names {len(lost)} tensors that are in no shard, first {min(lost)!r}", where=str(index))
    return tensors


def read_file(path: Path) -> dict[str, Tensor]:
    """All tensors of one file, in float32."""
    size = check_regular(path)
    if path.suffix == ".safetensors":
        with path.open("rb") as file:
            begin = file.read(8)
        length = struct.unpack("<Q", begin)[0] if len(begin) == 8 else size
        if length > min(size, LARGEST_HEADER):
            what = f"{BROKEN} (its header should have {length:,} bytes, the file has {size:,})"
            raise FolderError(what, where=str(path), hint=AGAIN)
        try:
            tensors = load_file(path)  # only maps the file; numbers are read when they are used
        except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
            raise FolderError(f"{BROKEN} ({_first_line(error)})", where=str(path), hint=AGAIN) from None
    else:
        tensors = _read_legacy(path, size)
    needed, there = 4 * sum(tensor.numel() for tensor in tensors.values()), memory_bytes()
    if needed > there > 0:
        what = f"needs {format_bytes(needed)} of memory, this machine has {format_bytes(there)}"
        raise FolderError(what, where=str(path))
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def _read_legacy(path: Path, size: int) -> dict[str, Tensor]:
    _check_archive(path, size)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader raises whatever a broken file happens to lead to
        if "GLOBAL" in str(error) or names_objects(path):
            raise FolderError(
                "contains more than tensors and is not opened, because that could run code",
                where=str(path),
                hint="ask its author for safetensors",
            ) from None
        reason = "torch cannot read it" if isinstance(error, pickle.UnpicklingError | KeyError) else _first_line(error)
        raise FolderError(f"{BROKEN} ({reason})", where=str(path), hint=AGAIN) from None
    plain = isinstance(content, dict) and all(isinstance(name, str) for name in content)
    if not plain or not all(isinstance(value, Tensor) for value in content.values()):
        raise FolderError("is not a table of tensors by name", where=str(path), hint="save model.state_dict() alone")
    for name, tensor in content.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested or tensor.device.type != "cpu":
            raise FolderError(f"{name} is not a plain table of numbers", where=str(path), hint="save it as one")
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            what = f"{BROKEN} ({name} is {list(tensor.shape)}, but not so many numbers are stored)"
            raise FolderError(what, where=str(path), hint=AGAIN)
    if sum(tensor.nbytes for tensor in content.values()) > MOST_SHARED * size:
        what = f"{BROKEN} (its tensors would be more than {MOST_SHARED} times as large as the file)"
        raise FolderError(what, where=str(path), hint=AGAIN)
    return {name: tensor.detach() for name, tensor in content.items()}


def _check_archive(path: Path, size: int) -> None:
    """Refuses an archive that would be larger unpacked than it is: torch stores its parts as they are."""
    with path.open("rb") as file:
        if file.read(len(ZIP)) != ZIP:
            return
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FolderError(f"{BROKEN} ({_first_line(error)})", where=str(path), hint=AGAIN) from None
    if unpacked > size:
        what = f"is compressed: unpacked it has {format_bytes(unpacked)}, packed {format_bytes(size)}"
        raise FolderError(what, where=str(path), hint="save it with torch.save, or as safetensors")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
