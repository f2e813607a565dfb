"""ALBERT's folder in `transformers`: AlbertModel, AlbertForMaskedLM, AlbertForPreTraining, and its task models.

Layers are kept once a group. Their tables are always followed by a mapping, even to the same width.
"""

from typing import Any

from bertie.data.masking import NGrams
from bertie.data.shapes import Pairs, Segments
from bertie.models.layouts.hf_labels import ANSWERS, CHOICE, ROWS, TOKENS
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names
from bertie.models.layouts.post_norm import (
    LAYER_NORM,
    PLAIN,
    config_of,
    encoder_names,
    encoder_of,
    has,
    head_names,
    head_of,
    refuse_unknown,
)
from bertie.models.layouts.task_heads import HeadNames, TaskHeads
from bertie.models.recipe import AnyObjective, Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.sentence_order import SentenceOrder

ARCHITECTURES = {
    (True, True): "AlbertForPreTraining",
    (True, False): "AlbertForMaskedLM",
    (False, False): "AlbertModel",
}
DROPOUT: dict[str, Any] = {"dropout": "classifier_dropout_prob", "rate": 0.1}
TASKS = TaskHeads(
    "Albert",
    {
        ROWS: HeadNames("classifier", "albert.pooler", **DROPOUT),
        CHOICE: HeadNames("classifier", "albert.pooler", **DROPOUT),
        TOKENS: HeadNames("classifier", **DROPOUT),
        ANSWERS: HeadNames("qa_outputs"),
    },
    pooler="albert.pooler",
)
DEFAULTS = {  # where a config is silent
    "embedding_size": 128,
    "num_hidden_groups": 1,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
LAYER: Names = {
    "mixer.part.project": ("attention.query", "attention.key", "attention.value"),
    "mixer.part.output": "attention.dense",
    "mixer.residual.norm": "attention.LayerNorm",
    "feed_forward.part.up": "ffn",
    "feed_forward.part.down": "ffn_output",
    "feed_forward.residual.norm": "full_layer_layer_norm",
}


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    refuse_unknown(config, {**PLAIN, "inner_group_num": 1})
    config = {**DEFAULTS, **config}
    task = TASKS.read(config, names)
    has_order = task is None and has(names, "sop_classifier.")
    objectives: list[AnyObjective] = []
    if task is not None:
        objectives.append(task)
    elif has(names, "predictions."):
        samples = Pairs(order=True) if has_order else Segments()
        objectives.append(MaskedLM(samples=samples, choose=NGrams(), head=head_of(config)))
    if has_order:
        objectives.append(SentenceOrder())
    pooler = has(names, "albert.pooler.") and TASKS.keeps_pooler(task, "albert.pooler")
    encoder = encoder_of(config, pooler=pooler, factor=config["embedding_size"])
    shared = {"stack.shared": ("mixer", "feed-forward"), "stack.groups": config["num_hidden_groups"]}
    return Recipe(name="albert", tokenizer="unigram", encoder=encoder.changed(shared), objectives=tuple(objectives))


def write_config(recipe: Recipe) -> dict[str, Any]:
    encoder = recipe.encoder
    heads = {objective.kind: objective for objective in recipe.objectives}
    masked = heads.get("masked-lm")
    return {
        "architectures": [ARCHITECTURES["masked-lm" in heads, "sentence-order" in heads]],
        "model_type": "albert",
        **config_of(encoder),
        "embedding_size": encoder.embeddings.table_width(encoder.width),
        "num_hidden_groups": encoder.stack.groups,  # type: ignore[union-attr]
        "inner_group_num": 1,
        "classifier_dropout_prob": 0.0,
        "pad_token_id": 0,
        **({"tie_word_embeddings": masked.head.tied} if isinstance(masked, MaskedLM) else {}),
        **TASKS.config(recipe),
    }


def names_of(recipe: Recipe) -> Names:
    names: dict[str, Any] = {
        "encoder.embeddings.project": "albert.encoder.embedding_hidden_mapping_in",
        **head_names(
            recipe, "predictions.dense", "predictions.LayerNorm", "predictions.decoder", bias="predictions.bias"
        ),
        "heads.sentence-order.output": "sop_classifier.classifier",
        **TASKS.names(recipe),
    }
    stack = recipe.encoder.stack
    owners = sorted({stack.owner(layer) for layer in range(stack.depth)})  # type: ignore[union-attr]
    for group, layer in enumerate(owners):
        theirs = f"albert.encoder.albert_layer_groups.{group}.albert_layers.0"
        names |= encoder_names("albert", theirs, LAYER, layer)
    return names


LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="albert.",
    kinds=frozenset({"masked-lm", "sentence-order"}),
    renamed={r"^(?=embeddings\.|encoder\.|pooler\.)": "albert.", **LAYER_NORM},
    # The rest are copies: of tied weights, or of a bias that one of two names is enough for.
    ignored=(r"albert\.embeddings\.position_ids", r"predictions\.(bias|decoder\.weight|decoder\.bias)"),
)
