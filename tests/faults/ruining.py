"""A tiny model folder, and functions that change its files: what the faults of `hostile_folders` are made of."""

import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import bertie
from bertie.disk import sealed
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

CANARY = "canary"
TEXTS = ["the cat sat", "is it a cat ?", "xyz \u4e2d aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + letter for letter in LETTERS), "the", "cat"]
WEIGHTS, LEGACY, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"
CONFIG, TOKENIZER, SETTINGS = "config.json", "tokenizer.json", "tokenizer_config.json"
POOL, TABLE = "encoder.layer.1.output.LayerNorm.bias", "embeddings.word_embeddings.weight"
POOLING, LIMITS = "1_Pooling/config.json", "sentence_bert_config.json"


def make_folder(folder: Path) -> None:
    """A folder as `sentence-transformers` writes it, with every kind of JSON file."""
    recipe = bert(Size(depth=2, width=16, num_heads=2), vocab_size=len(PIECES) + 2)
    recipe = recipe.changed({"encoder.stack.block.feed_forward.inner": 24}).replace(objectives=())
    Pretrained(Model.new(recipe), wordpiece_tokenizer(PIECES)).save(folder)
    (folder / "bertie.json").unlink()
    write_json(folder / "modules.json", [module("", "Transformer"), module("1_Pooling", "Pooling")])
    (folder / "1_Pooling").mkdir()
    write_json(folder / POOLING, {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True})
    write_json(folder / LIMITS, {"max_seq_length": 64, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": None})


def module(path: Any, kind: str) -> dict[str, Any]:
    return {"path": path, "type": f"sentence_transformers.models.{kind}"}


# --- how files are changed


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), "utf-8")


def write(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)


def edit(name: str, changes: dict[str, Any], folder: Path) -> None:
    """Sets fields of a JSON object; names with dots are of objects inside it."""
    content = read(folder / name)
    for key, value in changes.items():
        *outer, last = key.split(".")
        place = content
        for step in outer:
            place = place[step]
        place[last] = value
    write_json(folder / name, content)


def link(name: str, target: str, folder: Path) -> None:
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.symlink_to(target)


def become_folder(name: str, folder: Path) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()


def become_pipe(name: str, folder: Path) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


def become_huge(name: str, folder: Path) -> None:
    """A terabyte that takes no space on the disk."""
    with (folder / name).open("r+b") as file:
        file.truncate(2**40)


def edit_tensors(change: Callable[[dict[str, Tensor]], object], folder: Path) -> None:
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / WEIGHTS).items()}
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


def edit_header(change: Callable[[dict[str, Any]], object], folder: Path) -> None:
    whole = (folder / WEIGHTS).read_bytes()
    length = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + length :])


def first_tensor(field: str, value: Any, folder: Path) -> None:
    edit_header(
        lambda header: header[next(key for key in header if key != "__metadata__")].update({field: value}), folder
    )


def as_legacy(save: Callable[[dict[str, Tensor], Path], object], folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    save(tensors, folder / LEGACY)


class Touch:
    """Writes a file when it is unpickled."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch '{self.target}'",)


def pickled(protocol: int, tensors: dict[str, Tensor], path: Path) -> None:
    path.write_bytes(pickle.dumps({"a": Touch(path.parent.parent / CANARY)}, protocol=protocol))


def torch_pickled(zipped: bool, tensors: dict[str, Tensor], path: Path) -> None:
    content = {**tensors, "code": Touch(path.parent.parent / CANARY)}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)


def compressed(tensors: dict[str, Tensor], path: Path) -> None:
    plain = io.BytesIO()
    torch.save({name: torch.zeros_like(tensor) for name, tensor in tensors.items()} | {"x": torch.zeros(10**7)}, plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))


def expanded(tensors: dict[str, Tensor], path: Path) -> None:
    name = "embeddings.word_embeddings.weight"
    torch.save({**tensors, name: torch.zeros(1).expand(10**7, 10**5)}, path)


def many_views(tensors: dict[str, Tensor], path: Path) -> None:
    shared = torch.zeros(10**5, dtype=torch.float16)
    torch.save({**tensors, **{f"view.{number}": shared[:] for number in range(3000)}}, path)


def as_shards(change: Callable[[dict[str, Any]], Any], folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).rename(folder / "model-00001-of-00001.safetensors")
    index: dict[str, Any] = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}
    write_json(folder / INDEX, change(index))


def first_shard(value: Any, index: dict[str, Any]) -> dict[str, Any]:
    index["weight_map"][next(iter(index["weight_map"]))] = value
    return index


def as_adapter(config: dict[str, Any], tensors: dict[str, Tensor], folder: Path) -> None:
    """The folder becomes an adapter of a copy of itself."""
    base = folder.parent / "base"
    shutil.copytree(folder, base)
    shutil.rmtree(folder)
    folder.mkdir()
    plain = {"peft_type": "LORA", "base_model_name_or_path": str(base), "r": 1, "lora_alpha": 1}
    write_json(folder / "adapter_config.json", {**plain, **config})
    save_file(tensors, folder / "adapter_model.safetensors")


QUERY = "base_model.model.encoder.layer.0.attention.self.query"


def factors(width: int = 16, value: float = 0.0) -> dict[str, Tensor]:
    return {f"{QUERY}.lora_A.weight": torch.ones(1, width), f"{QUERY}.lora_B.weight": torch.full((width, 1), value)}


def with_card(change: dict[str, Any], folder: Path) -> None:
    """A folder of bertie's own, whose bertie.json was changed."""
    shutil.copytree(folder, folder.parent / "own")
    bertie.load(folder.parent / "own").save(folder)
    path = folder / "bertie.json"
    card = {name: value for name, value in {**read(path), **change}.items() if name != "sha256"}
    path.write_bytes(sealed(json.dumps(card, indent=1) + "\n"))  # whoever changes it can seal it again


def split_by(pattern: str, folder: Path) -> None:
    """Lets the tokenizer split texts by a regular expression."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    edit(TOKENIZER, {"pre_tokenizer": split}, folder)


def without_unknown(folder: Path) -> None:
    content = read(folder / TOKENIZER)
    del content["model"]["vocab"]["[UNK]"]
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] != "[UNK]"]
    write_json(folder / TOKENIZER, content)
    (folder / SETTINGS).unlink()
    (folder / "special_tokens_map.json").unlink()


def twice(name: str, folder: Path) -> None:
    """The first key of an object a second time, with another value."""
    text = (folder / name).read_text("utf-8").strip()
    key = next(iter(read(folder / name)))
    (folder / name).write_text(text[:-1] + f', "{key}": "other"}}', "utf-8")
