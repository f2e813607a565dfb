"""Checks the values of a config.json by name and type, before a recipe is read from them.

A value that is no number, or no size that a model could have, is one sentence with its name. Whether the weights have
these sizes is found out later, when names and shapes are compared.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from bertie.errors import FolderError
from bertie.json_files import shown
from bertie.spec import DEEPEST, LARGEST

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


def is_size(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LARGEST


def is_depth(value: Any) -> bool:
    return type(value) is int and 0 <= value <= DEEPEST


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < LARGEST and math.isfinite(value)


def is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def is_flag(value: Any) -> bool:
    return value is True or value is False or (type(value) is int and value in (0, 1))


Check = Callable[[Any], bool]
CHECKS: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(SIZES, (is_size, f"a whole number from 1 to {LARGEST:,}")),
    **dict.fromkeys(DEPTHS, (is_depth, f"a whole number of layers, at most {DEEPEST:,}")),
    **dict.fromkeys(NUMBERS, (is_number, "a finite number")),
    **dict.fromkeys(("layer_norm_eps", "norm_eps"), (is_positive, "a finite number above 0")),
    **dict.fromkeys(FLAGS, (is_flag, "true or false")),
    "num_labels": (is_size, f"a whole number from 1 to {LARGEST:,}"),
    "layer_types": (lambda value: value is None or isinstance(value, list), "a list"),
    "rope_parameters": (lambda value: value is None or isinstance(value, dict), "an object"),
    "classifier_pooling": (lambda value: isinstance(value, str), "a word"),
}


def check_values(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Refuses the first value that cannot work. Returns the config, with names of classes only where it has some."""
    for name, (check, wanted) in CHECKS.items():
        if name in config and not (config[name] is None and name in OFTEN_NULL) and not check(config[name]):
            raise FolderError(f"sets {name} to {shown(config[name])}, which should be {wanted}", where=where)
    classes = config.get("architectures")
    named = [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []
    return {**config, "architectures": named}
