"""ELECTRA's folders in `transformers`: ElectraModel, ElectraForPreTraining, its task models, and ElectraForMaskedLM for
a generator.

A model that has its generator with it is a discriminator's folder with a folder `generator` inside.
"""

from collections.abc import Mapping
from typing import Any

from bertie.models.layouts.hf_labels import ANSWERS, CHOICE, ROWS, TOKENS
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names
from bertie.models.layouts.post_norm import (
    LAYER_NORM,
    activation_of,
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
from bertie.objectives.replaced_tokens import ReplacedTokens
from bertie.tasks.task import Task

ARCHITECTURES = {
    (): "ElectraModel",
    ("replaced-tokens",): "ElectraForPreTraining",
    ("masked-lm",): "ElectraForMaskedLM",
}
GENERATOR = "generator"
PER_ROW = SequenceHeadSpec(transform=TransformSpec(activation="gelu"))
TASKS = TaskHeads(
    "Electra",
    {
        ROWS: HeadNames("classifier.out_proj", "classifier.dense", head=lambda config: PER_ROW),
        CHOICE: HeadNames(
            "classifier",
            "sequence_summary.summary",
            head=lambda config: PER_ROW,
            settings={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
            dropout="summary_last_dropout",
            rate=0.1,
        ),
        TOKENS: HeadNames("classifier"),
        ANSWERS: HeadNames("qa_outputs"),
    },
)


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    """A discriminator's own folder says nothing of the generator that it learned beside."""
    refuse_unknown(config)
    factor = config.get("embedding_size", 128)
    encoder = encoder_of(config, pooler=False, factor=None if factor == config["hidden_size"] else factor)
    if (task := TASKS.read(config, names)) is not None:
        return Recipe(name="electra", encoder=encoder, objectives=(task,))
    objectives: list[AnyObjective] = []
    if has(names, "discriminator_predictions."):
        objectives.append(ReplacedTokens(activation=activation_of(config)))
    if has(names, "generator_predictions."):
        objectives.append(MaskedLM(head=head_of(config).replace(activation="gelu")))
    return Recipe(name="electra", encoder=encoder, objectives=tuple(objectives))


def write_config(recipe: Recipe) -> dict[str, Any] | None:
    if any(LAYOUT.config(companion) is None for companion in companions(recipe).values()):
        return None
    encoder = recipe.encoder
    masked = next((one for one in recipe.objectives if isinstance(one, MaskedLM)), None)
    return {
        "architectures": [ARCHITECTURES[tuple(one.kind for one in recipe.objectives if not isinstance(one, Task))]],
        "model_type": "electra",
        **config_of(encoder),
        "embedding_size": encoder.embeddings.table_width(encoder.width),
        "pad_token_id": 0,
        **({"tie_word_embeddings": masked.head.tied} if masked else {}),
        **TASKS.config(recipe),
    }


def names_of(recipe: Recipe) -> Names:
    names = {
        **encoder_names("electra"),
        "encoder.embeddings.project": "electra.embeddings_project",
        "heads.replaced-tokens.head.dense": "discriminator_predictions.dense",
        "heads.replaced-tokens.head.output": "discriminator_predictions.dense_prediction",
        **head_names(recipe, "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"),
        **TASKS.names(recipe),
    }
    for folder, companion in companions(recipe).items():
        for ours, theirs in names_of(companion).items():
            parts = [theirs] if isinstance(theirs, str) else theirs
            names[f"heads.replaced-tokens.generator.{ours}"] = tuple(f"{folder}/{part}" for part in parts)  # type: ignore[union-attr]
    return names


def companions(recipe: Recipe) -> Mapping[str, Recipe]:
    for objective in recipe.objectives:
        if isinstance(objective, ReplacedTokens) and objective.generator is not None:
            masked = MaskedLM(head=objective.generator_head)
            tables = recipe.encoder.embeddings.tables  # which it shares, also where their sizes have changed since
            encoder = objective.generator.changed({"embeddings.tables": tables})
            return {GENERATOR: recipe.replace(name="electra", encoder=encoder, objectives=(masked,))}
    return {}


LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="electra.",
    kinds=frozenset({"replaced-tokens", "masked-lm"}),
    renamed={r"^(?=embeddings\.|embeddings_project\.|encoder\.)": "electra.", **LAYER_NORM},
    ignored=(r"electra\.embeddings\.position_ids", r"generator_lm_head\.weight"),  # the table of tokens again
    companions=companions,
)
