"""What the folders of BERT and its nearest relatives share: the config of a post-norm encoder, and its names."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from bertie.errors import FolderError, SpecError
from bertie.models.layouts.layout import Config, Entry, both, only
from bertie.models.layouts.task_heads import body_of, computed
from bertie.models.recipe import Recipe
from bertie.nn.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import ActivationName, DenseSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.scoring import DotProductSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.pair_relation import PairRelation
from bertie.tasks.task import Task

ACTIVATION_NAMES: dict[str, ActivationName] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
PLAIN = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
LAYER_NORM = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}


# --- config -> encoder


def encoder_of(config: Config, *, pooler: bool, first_position: int = 0, factor: int | None = None) -> EncoderSpec:
    """`first_position` is the row of the first token in the table of positions."""
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
        raise FolderError(
            f"config.json asks for the activation {name!r}", hint=f"known are {', '.join(ACTIVATION_NAMES)}"
        )
    return ACTIVATION_NAMES[name]


def refuse_unknown(config: Config, wanted: Config = PLAIN) -> None:
    """Settings that change the computation and that this layout does not read."""
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise FolderError(f"config.json sets {name} to {config[name]!r}, which is not supported here")


# --- encoder -> config


def config_of(encoder: EncoderSpec) -> dict[str, Any]:
    """May raise KeyError or AttributeError where the encoder is of another kind: see `if_expressible`."""
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
        "hidden_act": hf_activation(block.feed_forward.activation),
        "hidden_dropout_prob": block.residual.dropout,
        "attention_probs_dropout_prob": block.mixer.scorer.dropout,
        "layer_norm_eps": block.residual.norm_eps,
        "initializer_range": encoder.initial_std,
    }


def hf_activation(name: ActivationName) -> str:
    return {ours: theirs for theirs, ours in reversed(ACTIVATION_NAMES.items())}[name]


def if_expressible(
    recipe: Recipe,
    write: Callable[[Recipe], dict[str, Any]],
    read: Callable[[Config, frozenset[str]], Recipe],
    entries: Callable[[Recipe], list[Entry]],
) -> dict[str, Any] | None:
    """The config, or None where it cannot be written, or where reading it back would not give this model again."""
    if recipe.encoder.pooler is None and any(isinstance(one, PairRelation) for one in recipe.objectives):
        return None  # their heads of pairs always stand on a pooler
    try:
        config = write(recipe)
        return config if same_model(read(config, names_of(entries(recipe))), recipe) else None
    except (KeyError, AttributeError, FolderError, SpecError, ValidationError):
        return None


def same_model(one: Recipe, other: Recipe) -> bool:
    """The same computation with the same heads. How tokens are masked, and in which samples, is in no config."""
    return body_of(one) == body_of(other) and heads_of(one) == heads_of(other)


def heads_of(recipe: Recipe) -> dict[str, Any]:
    """What a config tells of them, by kind. Several kinds of task are the same there."""
    told = ("head", "activation")
    heads: dict[str, Any] = {}
    for one in recipe.objectives:
        if isinstance(one, Task):
            heads["task"] = computed(one, recipe.encoder)
        else:
            heads[one.kind] = [getattr(one, name, None) for name in told]
    return heads


# --- names


def encoder_entries(encoder: EncoderSpec, prefix: str) -> list[Entry]:
    """`prefix` ends with a dot."""
    entries = embedding_entries(encoder, prefix)
    for number in range(encoder.stack.depth):
        entries += layer_entries(f"encoder.stack.blocks.{number}", f"{prefix}encoder.layer.{number}")
    if encoder.pooler is not None:
        entries += both("encoder.pooler.dense", f"{prefix}pooler.dense")
    return entries


def embedding_entries(encoder: EncoderSpec, prefix: str) -> list[Entry]:
    tables = [
        only(f"encoder.embeddings.tables.{field}.weight", f"{prefix}embeddings.{TABLES[field]}_embeddings.weight")
        for field in encoder.embeddings.fields
    ]
    return [*tables, *both("encoder.embeddings.norm", f"{prefix}embeddings.LayerNorm")]


TABLES = {"tokens": "word", "positions": "position", "segments": "token_type"}
QKV = ("attention.self.query", "attention.self.key", "attention.self.value")
PARTS = {
    "mixer.part.output": "attention.output.dense",
    "mixer.residual.norm": "attention.output.LayerNorm",
    "feed_forward.part.up": "intermediate.dense",
    "feed_forward.part.down": "output.dense",
    "feed_forward.residual.norm": "output.LayerNorm",
}


def layer_entries(ours: str, theirs: str, qkv: tuple[str, ...] = QKV, parts: Mapping[str, str] = PARTS) -> list[Entry]:
    """`qkv` and `parts` are their names within a layer; ours project queries, keys and values at once."""
    projected = [
        Entry(f"{ours}.mixer.part.project.{last}", tuple(f"{theirs}.{name}.{last}" for name in qkv))
        for last in ("weight", "bias")
    ]
    others = [both(f"{ours}.{part}", f"{theirs}.{name}") for part, name in parts.items()]
    return [*projected, *(entry for entries in others for entry in entries)]


def head_entries(objective: MaskedLM, dense: str, norm: str, decoder: str, *, bias: str | None = None) -> list[Entry]:
    """Of a head with a transform. `bias` is where that of a tied head is kept, if not with the decoder."""
    head = f"heads.{objective.kind}"
    transform = [*both(f"{head}.transform.dense", dense), *both(f"{head}.transform.norm", norm)]
    if not objective.head.tied:
        return [*transform, *both(head, decoder)]
    return [*transform, only(f"{head}.bias", bias or f"{decoder}.bias")]


def names_of(entries: list[Entry]) -> frozenset[str]:
    return frozenset(name for entry in entries for name in entry.theirs)


def has(names: frozenset[str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in names)
