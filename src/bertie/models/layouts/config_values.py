"""Checks the values of a config.json by name and type, before a recipe is read from them.

A value that is no number, or no size that a model could have, is one sentence with its name. Whether the weights have
these sizes is found out later, when names and shapes are compared.
"""

import math
from collections.abc import Mapping
from types import NoneType
from typing import Any, NamedTuple

from bertie.errors import FolderError
from bertie.json_files import shown
from bertie.spec import DEEPEST, LARGEST

SMALLEST = math.ulp(0.0)  # number above 0
OFTEN_NULL = ("classifier_dropout", "num_labels")

SIZES = (
    *("hidden_size", "dim", "d_model", "emb_dim", "embedding_size", "vocab_size", "n_words"),
    *("intermediate_size", "hidden_dim", "d_inner", "d_head", "max_position_embeddings", "type_vocab_size"),
    *("num_attention_heads", "n_heads", "n_head", "num_hidden_groups", "inner_group_num", "n_langs"),
    *("local_attention", "global_attn_every_n_layers"),
)
DEPTHS = ("num_hidden_layers", "n_layers", "n_layer")
NUMBERS = (
    *("layer_norm_eps", "norm_eps", "initializer_range", "init_std", "global_rope_theta", "local_rope_theta"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "mlp_dropout"),
    *("embedding_dropout", "classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout"),
    *("summary_first_dropout", "summary_last_dropout"),
)
FLAGS = (
    *("tie_word_embeddings", "gelu_activation", "use_lang_emb", "sinusoidal_embeddings"),
    *("norm_bias", "attention_bias", "mlp_bias", "classifier_bias", "decoder_bias"),
)


class Limit(NamedTuple):
    """What a value may be: of one of these types and, where it is a number, from `low` to `high`."""

    types: tuple[type, ...]
    low: float
    high: float
    wanted: str


SIZE = Limit((int,), 1, LARGEST, f"a whole number from 1 to {LARGEST:,}")
DEPTH = Limit((int,), 0, DEEPEST, f"a whole number of layers, at most {DEEPEST:,}")
LIMITS = {
    **dict.fromkeys(SIZES, SIZE),
    **dict.fromkeys(DEPTHS, DEPTH),
    **dict.fromkeys(NUMBERS, Limit((int, float), -LARGEST, LARGEST, "a finite number")),
    **dict.fromkeys(("layer_norm_eps", "norm_eps"), Limit((int, float), SMALLEST, LARGEST, "a finite number above 0")),
    **dict.fromkeys(FLAGS, Limit((bool, int), 0, 1, "true or false")),
    "num_labels": SIZE,
    "layer_types": Limit((list, NoneType), 0, 0, "a list"),
    "rope_parameters": Limit((dict, NoneType), 0, 0, "an object"),
    "classifier_pooling": Limit((str,), 0, 0, "a word"),
}


def check_values(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Refuses the first value that cannot work. Returns the config, with names of classes only where it has some."""
    for name, limit in LIMITS.items():
        value = config.get(name)
        if name not in config or (value is None and name in OFTEN_NULL):
            continue
        is_outside = isinstance(value, int | float) and not limit.low <= value <= limit.high  # so is NaN
        if type(value) not in limit.types or is_outside:
            raise FolderError(f"sets {name} to {shown(value)}, which should be {limit.wanted}", where=where)
    classes = config.get("architectures")
    named = [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []
    return {**config, "architectures": named}
