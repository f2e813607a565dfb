"""BERT's folder in `transformers`: BertModel, BertForMaskedLM, BertForNextSentencePrediction, BertForPreTraining, and
its task models."""

from typing import Any

from bertie.data.shapes import Pairs, Segments
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
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence

ARCHITECTURES = {
    (True, True): "BertForPreTraining",
    (True, False): "BertForMaskedLM",
    (False, True): "BertForNextSentencePrediction",
    (False, False): "BertModel",
}
TASKS = TaskHeads(
    "Bert",
    {
        ROWS: HeadNames("classifier", "bert.pooler.dense"),
        CHOICE: HeadNames("classifier", "bert.pooler.dense"),
        TOKENS: HeadNames("classifier"),
        ANSWERS: HeadNames("qa_outputs"),
    },
    pooler="bert.pooler.dense",
)


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    """The tensors decide which heads there are, not the config: the two often disagree."""
    refuse_unknown(config)
    task = TASKS.read(config, names)
    encoder = encoder_of(config, pooler=has(names, "bert.pooler.") and TASKS.keeps_pooler(task, "bert.pooler"))
    if task is not None:
        return Recipe(name="bert", encoder=encoder, objectives=(task,))
    has_nsp = has(names, "cls.seq_relationship.")
    objectives: list[AnyObjective] = []
    if has(names, "cls.predictions."):
        objectives.append(MaskedLM(samples=Pairs() if has_nsp else Segments(), head=head_of(config)))
    if has_nsp:
        objectives.append(NextSentence())
    return Recipe(name="bert", encoder=encoder, objectives=tuple(objectives))


def write_config(recipe: Recipe) -> dict[str, Any]:
    heads = {objective.kind: objective for objective in recipe.objectives}
    masked = heads.get("masked-lm")
    return {
        "architectures": [ARCHITECTURES["masked-lm" in heads, "next-sentence" in heads]],
        "model_type": "bert",
        **config_of(recipe.encoder),
        "pad_token_id": 0,
        **({"tie_word_embeddings": masked.head.tied} if isinstance(masked, MaskedLM) else {}),
        **TASKS.config(recipe),
    }


def names_of(recipe: Recipe) -> Names:
    transform, decoder, bias = "cls.predictions.transform", "cls.predictions.decoder", "cls.predictions.bias"
    return {
        **encoder_names("bert"),
        **head_names(recipe, f"{transform}.dense", f"{transform}.LayerNorm", decoder, bias),
        "heads.next-sentence.output": "cls.seq_relationship",
        **TASKS.names(recipe),
    }


LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="bert.",
    kinds=frozenset({"masked-lm", "next-sentence"}),
    renamed={r"^(?=embeddings\.|encoder\.|pooler\.)": "bert.", **LAYER_NORM},
    # The rest are copies: of tied weights, or of a bias that one of two names is enough for.
    ignored=(r"bert\.embeddings\.position_ids", r"cls\.predictions\.(bias|decoder\.weight|decoder\.bias)"),
)
