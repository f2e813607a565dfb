"""DistilBERT's folder in `transformers`: DistilBertModel, DistilBertForMaskedLM, and its task models. No segments, no
pooler.

Sinusoidal positions are ordinary weights of the file, so that they are read and written as learned ones.
"""

from typing import Any

from bertie.models.layouts.hf_labels import ANSWERS, CHOICE, ROWS, TOKENS
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names
from bertie.models.layouts.post_norm import (
    LAYER_NORM,
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
from bertie.nn.heads import SequenceHeadSpec, TransformSpec
from bertie.objectives.masked_lm import MaskedLM

SPELLING = {  # the usual word -> theirs
    "hidden_size": "dim",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
LAYER: Names = {
    "mixer.part.project": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "mixer.part.output": "attention.out_lin",
    "mixer.residual.norm": "sa_layer_norm",
    "feed_forward.part.up": "ffn.lin1",
    "feed_forward.part.down": "ffn.lin2",
    "feed_forward.residual.norm": "output_layer_norm",
}
PER_ROW = HeadNames(
    "classifier",
    "pre_classifier",
    head=lambda config: SequenceHeadSpec(transform=TransformSpec(activation="relu")),
    dropout="seq_classif_dropout",
    rate=0.2,
)
TASKS = TaskHeads(
    "DistilBert",
    {
        ROWS: PER_ROW,
        CHOICE: PER_ROW,
        TOKENS: HeadNames("classifier", dropout=None),
        ANSWERS: HeadNames("qa_outputs"),
    },
)


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    refuse_unknown(config)
    respelled = {usual: config[theirs] for usual, theirs in SPELLING.items() if theirs in config}
    config = {**config, **respelled, "layer_norm_eps": 1e-12}  # which no config can change
    encoder = encoder_of(config, pooler=False)
    encoder = encoder.changed({"embeddings.tables": encoder.embeddings.tables[:2]})
    objectives: list[AnyObjective] = []
    if (task := TASKS.read(config, names)) is not None:
        objectives.append(task)
    elif has(names, "vocab_transform."):
        objectives.append(MaskedLM(head=head_of(config)))
    return Recipe(name="distilbert", encoder=encoder, objectives=tuple(objectives))


def as_masked_lm(recipe: Recipe) -> Recipe:
    """A student's head has the names of any other head that predicts masked tokens."""
    heads = tuple(MaskedLM(head=one.head) if isinstance(one, MaskedLM) else one for one in recipe.objectives)
    return recipe if len(heads) > 1 else recipe.replace(objectives=heads)


def write_config(recipe: Recipe) -> dict[str, Any] | None:
    if len(recipe.objectives) > 1:
        return None  # there is room for one head
    masked = next((one for one in recipe.objectives if isinstance(one, MaskedLM)), None)
    usual = config_of(recipe.encoder)
    return {
        "architectures": ["DistilBertForMaskedLM" if masked else "DistilBertModel"],
        "model_type": "distilbert",
        **{name: usual[name] for name in ("vocab_size", "max_position_embeddings", "initializer_range")},
        **{theirs: usual[name] for name, theirs in SPELLING.items()},
        "sinusoidal_pos_embds": False,
        "pad_token_id": 0,
        **({"tie_word_embeddings": masked.head.tied} if masked else {}),
        **TASKS.config(recipe),
    }


def names_of(recipe: Recipe) -> Names:
    return {
        **encoder_names("distilbert", "distilbert.transformer.layer.#", LAYER),
        **head_names(recipe, "vocab_transform", "vocab_layer_norm", "vocab_projector"),
        **TASKS.names(recipe),
    }


LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="distilbert.",
    kinds=frozenset({"masked-lm", "distillation"}),
    renamed={r"^(?=embeddings\.|transformer\.)": "distilbert.", **LAYER_NORM},
    ignored=(r"distilbert\.embeddings\.position_ids", r"vocab_projector\.weight"),  # the table of tokens again
    simplify=as_masked_lm,
)
