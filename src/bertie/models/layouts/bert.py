"""BERT's folder in `transformers`: BertModel, BertForMaskedLM, BertForNextSentencePrediction, BertForPreTraining."""

from typing import Any

from pydantic import ValidationError

from bertie.data.shapes import Pairs, SampleShape, Segments
from bertie.errors import FolderError
from bertie.models.layouts.layout import Config, Entry, HFLayout
from bertie.models.recipe import Recipe
from bertie.nn.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import ActivationName, DenseSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.scoring import DotProductSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence

ACTIVATION_NAMES: dict[str, ActivationName] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
ARCHITECTURES = {
    (True, True): "BertForPreTraining",
    (True, False): "BertForMaskedLM",
    (False, True): "BertForNextSentencePrediction",
    (False, False): "BertModel",
}


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    """Which heads there are is told by the tensors, not by the config: folders disagree with their own."""
    _refuse_unknown(config)
    encoder = encoder_of(config, pooler=any(name.startswith("bert.pooler.") for name in names))
    has_nsp = any(name.startswith("cls.seq_relationship.") for name in names)
    objectives: list[MaskedLM | NextSentence] = []
    if any(name.startswith("cls.predictions.") for name in names):
        objectives.append(_masked_lm(config, Pairs() if has_nsp else Segments()))
    if has_nsp:
        objectives.append(NextSentence())
    return Recipe(name="bert", encoder=encoder, objectives=tuple(objectives))


def encoder_of(config: Config, pooler: bool) -> EncoderSpec:
    eps, dropout = config.get("layer_norm_eps", 1e-12), config.get("hidden_dropout_prob", 0.1)
    tables = (
        TableSpec(field="tokens", size=config["vocab_size"]),
        TableSpec(field="positions", size=config.get("max_position_embeddings", 512)),
        TableSpec(field="segments", size=config.get("type_vocab_size", 2), optional=True),
    )
    scorer = DotProductSpec(dropout=config.get("attention_probs_dropout_prob", 0.1))
    block = BlockSpec(
        mixer=AttentionSpec(num_heads=config["num_attention_heads"], scorer=scorer),
        feed_forward=DenseSpec(inner=config["intermediate_size"], activation=_activation(config)),
        residual=PostNormSpec(norm_eps=eps, dropout=dropout),
    )
    return EncoderSpec(
        width=config["hidden_size"],
        embeddings=EmbeddingsSpec(tables=tables, norm_eps=eps, dropout=dropout),
        stack=StackSpec(depth=config["num_hidden_layers"], block=block),
        pooler=FirstDenseSpec() if pooler else None,
        initial_std=config.get("initializer_range", 0.02),
    )


def config_of(recipe: Recipe) -> dict[str, Any] | None:
    """The config of the same model in `transformers`, or None if reading it back would not give this recipe."""
    encoder, heads = recipe.encoder, {objective.kind: objective for objective in recipe.objectives}
    try:
        block = encoder.stack.block
        if block.feed_forward is None:
            return None
        sizes = {table.field: table.size for table in encoder.embeddings.tables}
        config: dict[str, Any] = {
            "architectures": [ARCHITECTURES["masked-lm" in heads, "next-sentence" in heads]],
            "model_type": "bert",
            "vocab_size": sizes["tokens"],
            "max_position_embeddings": sizes["positions"],
            "type_vocab_size": sizes["segments"],
            "hidden_size": encoder.width,
            "num_hidden_layers": encoder.stack.depth,
            "num_attention_heads": block.mixer.num_heads,
            "intermediate_size": block.feed_forward.inner,
            "hidden_act": _hf_activation(block.feed_forward.activation),
            "hidden_dropout_prob": block.residual.dropout,
            "attention_probs_dropout_prob": block.mixer.scorer.dropout,
            "layer_norm_eps": block.residual.norm_eps,
            "initializer_range": encoder.initial_std,
            "pad_token_id": 0,
        }
        head = heads.get("masked-lm")
        if isinstance(head, MaskedLM):
            config["tie_word_embeddings"] = head.tied
            expected = _masked_lm(config, head.samples)
            if (head.activation, head.norm_eps) != (expected.activation, expected.norm_eps):
                return None
        expressible = encoder_of(config, encoder.pooler is not None) == encoder
    except (KeyError, AttributeError, FolderError, ValidationError):
        return None
    return config if expressible and set(heads) <= {"masked-lm", "next-sentence"} else None


def entries_of(recipe: Recipe) -> list[Entry]:
    pairs = [
        ("encoder.embeddings.tables.tokens.weight", "bert.embeddings.word_embeddings.weight"),
        ("encoder.embeddings.tables.positions.weight", "bert.embeddings.position_embeddings.weight"),
        ("encoder.embeddings.tables.segments.weight", "bert.embeddings.token_type_embeddings.weight"),
        *_both("encoder.embeddings.norm", "bert.embeddings.LayerNorm"),
    ]
    entries = []
    for layer in range(recipe.encoder.stack.depth):
        ours, theirs = f"encoder.stack.blocks.{layer}", f"bert.encoder.layer.{layer}"
        for last in ("weight", "bias"):
            parts = tuple(f"{theirs}.attention.self.{name}.{last}" for name in ("query", "key", "value"))
            entries.append(Entry(f"{ours}.mixer.part.project.{last}", parts))
        pairs += [
            *_both(f"{ours}.mixer.part.output", f"{theirs}.attention.output.dense"),
            *_both(f"{ours}.mixer.residual.norm", f"{theirs}.attention.output.LayerNorm"),
            *_both(f"{ours}.feed_forward.part.up", f"{theirs}.intermediate.dense"),
            *_both(f"{ours}.feed_forward.part.down", f"{theirs}.output.dense"),
            *_both(f"{ours}.feed_forward.residual.norm", f"{theirs}.output.LayerNorm"),
        ]
    if recipe.encoder.pooler is not None:
        pairs += _both("encoder.pooler.dense", "bert.pooler.dense")
    for objective in recipe.objectives:
        if isinstance(objective, MaskedLM):
            pairs += [
                *_both("heads.masked-lm.dense", "cls.predictions.transform.dense"),
                *_both("heads.masked-lm.norm", "cls.predictions.transform.LayerNorm"),
            ]
            if objective.tied:
                pairs.append(("heads.masked-lm.bias", "cls.predictions.bias"))
            else:
                pairs += _both("heads.masked-lm", "cls.predictions.decoder")
        if isinstance(objective, NextSentence):
            pairs += _both("heads.next-sentence.output", "cls.seq_relationship")
    return entries + [Entry(ours, (theirs,)) for ours, theirs in pairs]


def _both(ours: str, theirs: str) -> list[tuple[str, str]]:
    return [(f"{ours}.{last}", f"{theirs}.{last}") for last in ("weight", "bias")]


def _masked_lm(config: Config, samples: SampleShape) -> MaskedLM:
    return MaskedLM(
        samples=samples,
        activation=_activation(config),
        norm_eps=config.get("layer_norm_eps", 1e-12),
        tied=config.get("tie_word_embeddings", True),
    )


def _activation(config: Config) -> ActivationName:
    name = config.get("hidden_act", "gelu")
    if not isinstance(name, str) or name not in ACTIVATION_NAMES:
        raise FolderError(
            f"config.json asks for the activation {name!r}", hint=f"known are {', '.join(ACTIVATION_NAMES)}"
        )
    return ACTIVATION_NAMES[name]


def _hf_activation(name: ActivationName) -> str:
    return {ours: theirs for theirs, ours in reversed(ACTIVATION_NAMES.items())}[name]


def _refuse_unknown(config: Config) -> None:
    """Settings that change the computation and that this layout does not read."""
    wanted = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise FolderError(f"config.json sets {name} to {config[name]!r}, which is not supported here")


LAYOUT = HFLayout(
    recipe=recipe_of,
    config=config_of,
    entries=entries_of,
    prefix="bert.",
    renamed={
        r"^(?=embeddings\.|encoder\.|pooler\.)": "bert.",
        r"LayerNorm\.gamma$": "LayerNorm.weight",
        r"LayerNorm\.beta$": "LayerNorm.bias",
    },
    # The rest are copies: of tied weights, or of a bias that one of two names is enough for.
    ignored=(r"bert\.embeddings\.position_ids", r"cls\.predictions\.(bias|decoder\.weight|decoder\.bias)"),
)
