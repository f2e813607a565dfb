"""RoBERTa's folder in `transformers`, its task models too, and those of XLM-R and CamemBERT, which differ in the
tokenizer alone."""

from functools import partial
from typing import Any

from bertie.data.shapes import Packed
from bertie.errors import FolderError
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
from bertie.models.recipe import AnyObjective, Recipe, TokenizerKind
from bertie.objectives.masked_lm import MaskedLM

CLASSES = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"}
TOKENIZERS: dict[str, TokenizerKind] = {"roberta": "byte-bpe", "xlm-roberta": "unigram", "camembert": "unigram"}
HEADS = {
    ROWS: HeadNames("classifier.out_proj", "classifier.dense"),
    CHOICE: HeadNames("classifier", "roberta.pooler.dense", dropout=None),
    TOKENS: HeadNames("classifier"),
    ANSWERS: HeadNames("qa_outputs"),
}
TASKS = {model_type: TaskHeads(name, HEADS, pooler="roberta.pooler.dense") for model_type, name in CLASSES.items()}


def recipe_of(model_type: str, config: Config, names: frozenset[str]) -> Recipe:
    refuse_unknown(config)
    padding = config.get("pad_token_id", 1)
    if not isinstance(padding, int) or padding < 0:
        raise FolderError(f"config.json sets pad_token_id to {padding!r}, and positions are counted from behind it")
    task = TASKS[model_type].read(config, names)
    pooler = has(names, "roberta.pooler.") and TASKS[model_type].keeps_pooler(task, "roberta.pooler")
    encoder = encoder_of(config, pooler=pooler, first_position=padding + 1)
    objectives: list[AnyObjective] = []
    if task is not None:
        objectives.append(task)
    elif has(names, "lm_head."):
        objectives.append(MaskedLM(samples=Packed(), head=head_of(config).replace(activation="gelu")))
    return Recipe(name=model_type, tokenizer=TOKENIZERS[model_type], encoder=encoder, objectives=tuple(objectives))


def write_config(model_type: str, recipe: Recipe) -> dict[str, Any] | None:
    if (recipe.tokenizer == "unigram") != (TOKENIZERS[model_type] == "unigram"):
        return None  # it belongs to the other
    masked = next((one for one in recipe.objectives if isinstance(one, MaskedLM)), None)
    return {
        "architectures": [CLASSES[model_type] + ("ForMaskedLM" if masked else "Model")],
        "model_type": model_type,
        **config_of(recipe.encoder),
        "pad_token_id": recipe.encoder.embeddings.table("positions").offset - 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        **({"tie_word_embeddings": masked.head.tied} if masked else {}),
        **TASKS[model_type].config(recipe),
    }


def names_of(recipe: Recipe) -> Names:
    return {
        **encoder_names("roberta"),
        **head_names(recipe, "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"),
        **TASKS["roberta"].names(recipe),
    }


LAYOUTS = {
    model_type: HFLayout(
        read=partial(recipe_of, model_type),
        write=partial(write_config, model_type),
        names=names_of,
        tasks=TASKS[model_type],
        prefix="roberta.",
        kinds=frozenset({"masked-lm"}),
        renamed={r"^(?=embeddings\.|encoder\.|pooler\.)": "roberta.", **LAYER_NORM},
        # The rest are copies: of tied weights, or of a bias that one of two names is enough for.
        ignored=(r"roberta\.embeddings\.position_ids", r"lm_head\.(bias|decoder\.weight|decoder\.bias)"),
    )
    for model_type in CLASSES
}
