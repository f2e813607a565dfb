"""Shared by the layouts of BERT and its closest relatives: the config of a post-norm encoder, and its names."""

from typing import Any

from bertie.errors import FolderError
from bertie.models.layouts.names import Config, Names
from bertie.models.recipe import Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import ActivationName, DenseSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.masked_lm import MaskedLM

ACTIVATION_NAMES: dict[str, ActivationName] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
HF_ACTIVATIONS = {ours: theirs for theirs, ours in reversed(ACTIVATION_NAMES.items())}
PLAIN = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
LAYER_NORM = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}


# --- config -> encoder


def encoder_of(config: Config, *, pooler: bool, first_position: int = 0, factor: int | None = None) -> EncoderSpec:
    """Reads an encoder. `first_position` is the row of the first token in the table of positions."""
    eps, dropout = config.get("layer_norm_eps", 1e-12), config.get("hidden_dropout_prob", 0.1)
    tables = (
        TableSpec(field="tokens", size=config["vocab_size"]),
        TableSpec(field="positions", size=config.get("max_position_embeddings", 512), offset=first_position),
        TableSpec(field="segments", size=config.get("type_vocab_size", 2), optional=True),
    )
    scorer = DotProductSpec(dropout=config.get("attention_probs_dropout_prob", 0.1))
    block = BlockSpec(
        mixer=AttentionSpec(num_heads=config["num_attention_heads"], scorer=scorer),
        feed_forward=DenseSpec(inner=config["intermediate_size"], activation=activation_of(config)),
        residual=PostNormSpec(norm_eps=eps, dropout=dropout),
    )
    return EncoderSpec(
        width=config["hidden_size"],
        embeddings=EmbeddingsSpec(tables=tables, norm_eps=eps, dropout=dropout, factor=factor),
        stack=StackSpec(depth=config["num_hidden_layers"], block=block),
        pooler=FirstDenseSpec() if pooler else None,
        initial_std=config.get("initializer_range", 0.02),
    )


def head_of(config: Config) -> VocabularyHeadSpec:
    return VocabularyHeadSpec(
        activation=activation_of(config),
        norm_eps=config.get("layer_norm_eps", 1e-12),
        tied=config.get("tie_word_embeddings", True),
    )


def activation_of(config: Config, key: str = "hidden_act") -> ActivationName:
    name = config.get(key, "gelu")
    if not isinstance(name, str) or name not in ACTIVATION_NAMES:
        raise FolderError(f"config.json has the activation {name!r}", hint=f"known are {', '.join(ACTIVATION_NAMES)}")
    return ACTIVATION_NAMES[name]


def refuse_unknown(config: Config, wanted: Config = PLAIN) -> None:
    """Refuses settings that change the computation and that this layout does not read."""
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise FolderError(f"config.json sets {name} to {config[name]!r}, which is not supported here")


# --- encoder -> config


def config_of(encoder: EncoderSpec) -> dict[str, Any]:
    """May raise KeyError or AttributeError where the encoder is of another kind: see `HFLayout.config`."""
    block: Any = encoder.stack.block  # type: ignore[union-attr]
    sizes = {table.field: table.size for table in encoder.embeddings.tables}
    return {
        "vocab_size": sizes["tokens"],
        "max_position_embeddings": sizes["positions"],
        **({"type_vocab_size": sizes["segments"]} if "segments" in sizes else {}),
        "hidden_size": encoder.width,
        "num_hidden_layers": encoder.stack.depth,
        "num_attention_heads": block.mixer.num_heads,
        "intermediate_size": block.feed_forward.inner,
        "hidden_act": HF_ACTIVATIONS[block.feed_forward.activation],
        "hidden_dropout_prob": block.residual.dropout,
        "attention_probs_dropout_prob": block.mixer.scorer.dropout,
        "layer_norm_eps": block.residual.norm_eps,
        "initializer_range": encoder.initial_std,
    }


# --- names

LAYER: Names = {  # within "encoder.stack.blocks.#" and within their layer
    "mixer.part.project": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "mixer.part.output": "attention.output.dense",
    "mixer.residual.norm": "attention.output.LayerNorm",
    "feed_forward.part.up": "intermediate.dense",
    "feed_forward.part.down": "output.dense",
    "feed_forward.residual.norm": "output.LayerNorm",
}


def encoder_names(body: str, layer: str | None = None, parts: Names = LAYER, number: int | str = "#") -> dict[str, Any]:
    """Names of an encoder that they call `body`. `layer` is what they call a layer, `number` is our number of it."""
    layer = layer or f"{body}.encoder.layer.#"
    names: dict[str, Any] = {
        "encoder.embeddings.tables.tokens": f"{body}.embeddings.word_embeddings",
        "encoder.embeddings.tables.positions": f"{body}.embeddings.position_embeddings",
        "encoder.embeddings.tables.segments": f"{body}.embeddings.token_type_embeddings",
        "encoder.embeddings.norm": f"{body}.embeddings.LayerNorm",
    }
    for ours, theirs in parts.items():
        several = [theirs] if isinstance(theirs, str) else theirs
        names[f"encoder.stack.blocks.{number}.{ours}"] = tuple(f"{layer}.{part}" for part in several)  # type: ignore[union-attr]
    return names


def head_names(recipe: Recipe, dense: str, norm: str, decoder: str, bias: str | None = None) -> Names:
    """Names of heads that predict tokens. `bias` is where that of a tied head is kept, if not with the decoder."""
    names: dict[str, str] = {}
    for objective in recipe.objectives:
        if isinstance(objective, MaskedLM):
            head = f"heads.{objective.name}"
            names |= {f"{head}.transform.dense": dense, f"{head}.transform.norm": norm}
            if objective.head.tied:
                names[f"{head}.bias"] = bias or f"{decoder}.bias"
            else:
                names[head] = decoder
    return names


def has(names: frozenset[str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in names)
