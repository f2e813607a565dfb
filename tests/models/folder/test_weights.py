"""Weight files: every format read, every kind of damage told, no code ever run."""

import io
import json
import os
import pickle
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertie.errors import FolderError
from bertie.models.folder.folder import open_folder
from bertie.models.folder.weights import check_finite, read_weights, write_weights

TENSORS = {"a": torch.randn(3, 4), "b.c": torch.randn(5), "n": torch.arange(4)}


def equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(left[name].equal(right[name]) for name in left)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_weights(tmp_path, TENSORS)
    assert equal(read_weights(tmp_path), TENSORS)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_views_are_written_as_they_look(tmp_path: Path) -> None:
    whole = torch.randn(6, 4)
    write_weights(tmp_path, {"t": whole.T, "part": whole[2:4]})
    read = read_weights(tmp_path)
    assert read["t"].equal(whole.T)
    assert read["part"].equal(whole[2:4])


def test_a_failed_write_leaves_the_old_weights_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_weights(tmp_path, TENSORS)

    def full_disk(tensors: object, path: Path, metadata: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bertie.models.folder.weights.save_file", full_disk)
    with pytest.raises(FolderError, match=r"model.safetensors: the disk is full; free some space"):
        write_weights(tmp_path, {"a": torch.zeros(1)})
    assert equal(read_weights(tmp_path), TENSORS)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("legacy", [False, True])
def test_other_precisions_become_float32(tmp_path: Path, dtype: torch.dtype, legacy: bool) -> None:
    tensors = {"a": torch.tensor([0.5, -2.0], dtype=dtype)}
    if legacy:
        torch.save(tensors, tmp_path / "pytorch_model.bin")
    else:
        save_file(tensors, tmp_path / "model.safetensors")
    assert read_weights(tmp_path)["a"].dtype == torch.float32
    assert read_weights(tmp_path)["a"].tolist() == [0.5, -2.0]


@pytest.mark.parametrize("zipped", [False, True])
def test_legacy_files(tmp_path: Path, zipped: bool) -> None:
    torch.save(TENSORS, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    assert equal(read_weights(tmp_path), TENSORS)


def test_safetensors_are_preferred(tmp_path: Path) -> None:
    torch.save({"old": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    write_weights(tmp_path, TENSORS)
    assert equal(read_weights(tmp_path), TENSORS)


def test_no_weights(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"has no weights; one of model.safetensors, .* should be beside config.json"):
        read_weights(tmp_path)


# Shards


def test_shards_of_transformers(tmp_path: Path, make_hf: Callable[..., Any]) -> None:
    make_hf(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    whole: dict[str, Tensor] = {}
    for shard in tmp_path.glob("model-*.safetensors"):
        whole |= load_file(shard)
    assert equal(read_weights(tmp_path), whole)


def write_shards(folder: Path, names: dict[str, str] | None = None) -> Path:
    save_file({"a": TENSORS["a"]}, folder / "one.safetensors")
    save_file({"b.c": TENSORS["b.c"], "n": TENSORS["n"]}, folder / "two.safetensors")
    names = names or {"a": "one.safetensors", "b.c": "two.safetensors", "n": "two.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": names}), "utf-8")
    return index


def test_shards_by_hand(tmp_path: Path) -> None:
    write_shards(tmp_path)
    assert equal(read_weights(tmp_path), TENSORS)


def test_legacy_shards(tmp_path: Path) -> None:
    torch.save({"a": TENSORS["a"]}, tmp_path / "one.bin")
    index = {"weight_map": {"a": "one.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index), "utf-8")
    assert read_weights(tmp_path)["a"].equal(TENSORS["a"])


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    write_shards(tmp_path)
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(FolderError, match=r"index.json: names the shard 'two.safetensors', which is not in the folder"):
        read_weights(tmp_path)


def test_a_broken_shard_is_named(tmp_path: Path) -> None:
    write_shards(tmp_path)
    (tmp_path / "two.safetensors").write_bytes(b"nothing")
    with pytest.raises(FolderError, match=r"two.safetensors: is broken or incomplete"):
        read_weights(tmp_path)


def test_a_tensor_that_no_shard_holds_is_named(tmp_path: Path) -> None:
    write_shards(tmp_path, {"a": "one.safetensors", "lost": "two.safetensors"})
    with pytest.raises(FolderError, match="names 1 tensors that are in no shard, first 'lost'"):
        read_weights(tmp_path)


@pytest.mark.parametrize("elsewhere", ["../one.safetensors", "..", "sub/one.safetensors", "/etc/passwd"])
def test_shards_outside_the_folder_are_refused(tmp_path: Path, elsewhere: str) -> None:
    inner = tmp_path / "inner"
    (inner / "sub").mkdir(parents=True)
    for place in (tmp_path, inner / "sub"):
        save_file({"a": TENSORS["a"]}, place / "one.safetensors")
    write_shards(inner, {"a": elsewhere})
    with pytest.raises(FolderError, match="which is not in the folder"):
        read_weights(inner)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": null, "b": "x"}}', "\xff"]
)
def test_a_broken_index_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FolderError, match=r"model.safetensors.index.json:"):
        read_weights(tmp_path)


# Damage


@pytest.mark.parametrize("keep", [0, 4, 8, 20, 60, -1])
def test_truncated_safetensors(tmp_path: Path, keep: int) -> None:
    write_weights(tmp_path, TENSORS)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FolderError, match=r"safetensors: is broken or incomplete \(.*; copy or download it again"):
        read_weights(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_random_bytes(tmp_path: Path, name: str) -> None:
    rng = random.Random(0)
    for size in (*range(40), 100, 5000):
        (tmp_path / name).write_bytes(rng.randbytes(size))
        with pytest.raises(FolderError, match=name):
            read_weights(tmp_path)


@pytest.mark.parametrize("zipped", [False, True])
def test_truncated_legacy_files(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save(TENSORS, path, _use_new_zipfile_serialization=zipped)
    whole = path.read_bytes()
    for keep in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:keep])
        with pytest.raises(FolderError, match=r"pytorch_model.bin"):
            read_weights(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"random words"])
def test_a_broken_legacy_file_is_not_called_dangerous(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(FolderError, match="is broken or incomplete"):
        read_weights(tmp_path)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_flipped_bytes_give_tensors_or_a_plain_error(tmp_path: Path) -> None:
    rng = random.Random(1)
    for name, save in (("model.safetensors", save_file), ("pytorch_model.bin", torch.save)):
        folder = tmp_path / name
        folder.mkdir()
        save(TENSORS, folder / name)
        whole = (folder / name).read_bytes()
        for _ in range(150):
            broken = bytearray(whole)
            for _ in range(rng.randint(1, 3)):
                broken[rng.randrange(len(broken) if rng.random() < 0.3 else min(300, len(broken)))] = rng.randrange(256)
            (folder / name).write_bytes(broken)
            try:
                read_weights(folder)
            except FolderError as error:
                assert "\n" not in str(error)


def test_a_directory_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(FolderError, match=r"model.safetensors"):
        read_weights(tmp_path)


# Code in files


class Touch:
    """A pickle that writes a file when it is opened."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch '{self.target}'",)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("how", ["torch", "legacy torch", "pickle"])
def test_code_in_a_pickle_is_refused_and_not_run(tmp_path: Path, how: str) -> None:
    target, path = tmp_path / "ran", tmp_path / "pytorch_model.bin"
    content = {"a": torch.zeros(2), "b": Touch(target)}
    if how == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=how == "torch")
    with pytest.raises(FolderError, match=r"bin: contains more than tensors and is not opened.*safetensors"):
        read_weights(tmp_path)
    assert not target.exists()
    torch.load(path, weights_only=False) if how != "pickle" else pickle.loads(path.read_bytes())
    assert target.exists()  # it would have


@pytest.mark.parametrize("content", [[torch.zeros(1)], {"model": {"a": torch.zeros(1)}}, torch.zeros(1), {"epoch": 3}])
def test_a_legacy_file_of_something_else(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(FolderError, match="is not a table of tensors by name"):
        read_weights(tmp_path)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    torch.save({1: torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(FolderError, match="is not a table of tensors by name"):
        read_weights(tmp_path)


def test_a_header_that_claims_to_be_huge(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    with pytest.raises(FolderError, match="is broken or incomplete"):
        read_weights(tmp_path)


def test_tensors_outlive_their_file(tmp_path: Path) -> None:
    write_weights(tmp_path, TENSORS)
    read = read_weights(tmp_path)
    write_weights(tmp_path, {name: torch.zeros_like(tensor) for name, tensor in TENSORS.items()})
    assert equal(read, TENSORS)
    shutil.rmtree(tmp_path)
    assert equal(read, TENSORS)


# Numbers and sizes


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_numbers_that_are_not_finite_are_refused(
    folder: Path, edit_weights: Callable[..., None], number: float, dtype: torch.dtype
) -> None:
    def ruin(tensors: dict[str, Tensor]) -> None:
        tensors["bert.pooler.dense.weight"] = tensors["bert.pooler.dense.weight"].to(dtype)
        tensors["bert.pooler.dense.weight"][3, 5] = number

    edit_weights(folder, ruin)
    with pytest.raises(FolderError, match=r"bert\.pooler\.dense\.weight holds numbers that are NaN or infinite"):
        open_folder(folder)


def test_finite_numbers_may_add_up_to_infinity() -> None:
    check_finite("a", torch.full((4,), 3e38), "here")
    check_finite("n", torch.arange(3), "here")
    with pytest.raises(FolderError, match="here: a holds"):
        check_finite("a", torch.tensor([float("inf"), float("-inf")]), "here")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_code_in_a_plain_pickle_is_called_so_in_every_protocol(tmp_path: Path, protocol: int) -> None:
    content = {"a": Touch(tmp_path / "ran")}
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(content, protocol=protocol))
    with pytest.raises(FolderError, match="because that could run code"):
        read_weights(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_no_file_unpacks_to_more_than_it_is(tmp_path: Path) -> None:
    plain = io.BytesIO()
    torch.save({"a": torch.zeros(10**6)}, plain)
    packed = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    with pytest.raises(FolderError, match="is compressed: unpacked it has 4"):
        read_weights(tmp_path)
    torch.save({"a": torch.zeros(1).expand(10**7, 10**5)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(FolderError, match="but not so many numbers are stored"):
        read_weights(tmp_path)


def test_weights_larger_than_the_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_weights(tmp_path, TENSORS)
    monkeypatch.setattr("bertie.models.folder.weights.memory_bytes", lambda: 80)
    with pytest.raises(FolderError, match="needs 84 bytes of memory, this machine has 80 bytes"):
        read_weights(tmp_path)
