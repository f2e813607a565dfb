"""A tiny random model of `transformers` with a small WordPiece vocabulary, as a folder to read and to break."""

import json
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *string.ascii_lowercase,
    *("##" + letter for letter in string.ascii_lowercase),
    *(".", ",", "?", "the", "capital", "of", "france", "is", "paris", "cat", "sat", "##ing", "中", "文"),
]
VOCAB_SIZE = len(PIECES) + 3  # padded, as people do
WIDTH, DEPTH, MAX_POSITIONS = 32, 2, 40


def hf_config(**changes: Any) -> Any:
    from transformers import BertConfig

    sizes = {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": WIDTH,
        "num_hidden_layers": DEPTH,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": MAX_POSITIONS,
        "initializer_range": 0.3,
    }
    return BertConfig(**{**sizes, **changes})


def save_hf(folder: Path, class_name: str = "BertForPreTraining", **options: Any) -> Any:
    """A random model of `transformers` in a folder; what is no option of saving goes into its config."""
    import transformers

    saving = {name: options.pop(name) for name in ("max_shard_size",) if name in options}
    torch.manual_seed(0)
    model = getattr(transformers, class_name)(hf_config(**options)).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder, **saving)
    return model


@pytest.fixture(scope="session")
def make_hf() -> Callable[..., Any]:
    """`make_hf(folder, "BertModel", hidden_act="relu")` saves a random model there and returns it."""
    return save_hf


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny folder, not to be changed."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    save_hf(folder)
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in PIECES), "utf-8")
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the tiny folder, to be changed at will."""
    return Path(shutil.copytree(pristine, tmp_path / "model"))


@pytest.fixture(scope="session")
def edit_json() -> Callable[..., None]:
    """`edit_json(path, hidden_act="mish")` sets fields; a value of None takes the field out."""

    def edit(path: Path, **changes: Any) -> None:
        content = {**json.loads(path.read_text("utf-8")), **changes}
        path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}), "utf-8")

    return edit


@pytest.fixture(scope="session")
def edit_weights() -> Callable[[Path, Callable[[dict[str, Tensor]], object]], None]:
    """`edit_weights(folder, change)` lets `change` alter the dict of tensors in place."""

    def edit(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
        tensors = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return edit
