"""XLM's folder in `transformers`: XLMModel, XLMWithLMHeadModel, and its task models but that of choices.

Where a batch does not tell its languages, all tokens are of the first one; `transformers` adds no language at all then.
"""

from typing import Any

from bertie.data.shapes import Parallel
from bertie.models.layouts.hf_labels import ANSWERS, ROWS, TOKENS
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names
from bertie.models.layouts.post_norm import has, refuse_unknown
from bertie.models.layouts.task_heads import HeadNames, TaskHeads
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.masked_lm import MaskedLM

PLAIN = {"causal": False, "asm": False, "is_encoder": True}
SUMMARY = {
    "summary_type": "first",
    "summary_use_proj": True,
    "summary_proj_to_labels": True,
    "summary_activation": None,
}
TASKS = TaskHeads(
    "XLM",
    {
        ROWS: HeadNames("sequence_summary.summary", settings=SUMMARY, dropout="summary_first_dropout", rate=0.1),
        TOKENS: HeadNames("classifier", dropout=None),
        ANSWERS: HeadNames("qa_outputs", suffix="Simple"),
    },
)


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    refuse_unknown(config, PLAIN)
    objectives: list[AnyObjective] = []
    if (task := TASKS.read(config, names)) is not None:
        objectives.append(task)
    elif has(names, "pred_layer."):
        head = VocabularyHeadSpec(transform=False, tied=config.get("tie_word_embeddings", True))
        objectives.append(MaskedLM(samples=Parallel(), head=head))
    return Recipe(name="xlm", encoder=encoder_of(config), objectives=tuple(objectives))


def encoder_of(config: Config) -> EncoderSpec:
    """Sinusoidal positions are a table in the file like any other."""
    width, dropout = config["emb_dim"], config.get("dropout", 0.1)
    eps, num_languages = config.get("layer_norm_eps", 1e-12), config.get("n_langs", 1)
    tables = [
        TableSpec(field="tokens", size=config["n_words" if "n_words" in config else "vocab_size"]),
        TableSpec(field="positions", size=config.get("max_position_embeddings", 512)),
    ]
    if num_languages > 1 and config.get("use_lang_emb", True):
        tables.append(TableSpec(field="languages", size=num_languages, optional=True))
    block = BlockSpec(
        mixer=AttentionSpec(
            num_heads=config["n_heads"], scorer=DotProductSpec(dropout=config.get("attention_dropout", 0.1))
        ),
        feed_forward=DenseSpec(inner=4 * width, activation="gelu" if config.get("gelu_activation", True) else "relu"),
        residual=PostNormSpec(norm_eps=eps, dropout=dropout),
    )
    return EncoderSpec(
        width=width,
        embeddings=EmbeddingsSpec(tables=tuple(tables), norm_eps=eps, dropout=dropout),
        stack=StackSpec(depth=config["n_layers"], block=block),
        initial_std=config.get("init_std", 0.02),
    )


def write_config(recipe: Recipe) -> dict[str, Any]:
    encoder = recipe.encoder
    block: Any = encoder.stack.block  # type: ignore[union-attr]
    sizes = {table.field: table.size for table in encoder.embeddings.tables}
    masked = next((one for one in recipe.objectives if isinstance(one, MaskedLM)), None)
    return {
        "architectures": ["XLMWithLMHeadModel" if masked else "XLMModel"],
        "model_type": "xlm",
        "vocab_size": sizes["tokens"],
        "max_position_embeddings": sizes["positions"],
        "n_langs": sizes.get("languages", 1),
        "use_lang_emb": "languages" in sizes,
        "emb_dim": encoder.width,
        "n_layers": encoder.stack.depth,
        "n_heads": block.mixer.num_heads,
        "gelu_activation": block.feed_forward.activation == "gelu",
        "dropout": block.residual.dropout,
        "attention_dropout": block.mixer.scorer.dropout,
        "layer_norm_eps": block.residual.norm_eps,
        "init_std": encoder.initial_std,
        "embed_init_std": encoder.initial_std,
        # No id: without an attention mask, `transformers` would take the tokens of that id for padding.
        "pad_token_id": -1,
        **PLAIN,
        **({"tie_word_embeddings": masked.head.tied} if masked else {}),
        **TASKS.config(recipe),
    }


NAMES: Names = {
    "encoder.embeddings.tables.tokens": "transformer.embeddings",
    "encoder.embeddings.tables.positions": "transformer.position_embeddings",
    "encoder.embeddings.tables.languages": "transformer.lang_embeddings",
    "encoder.embeddings.norm": "transformer.layer_norm_emb",
    "encoder.stack.blocks.#.mixer.part.project": tuple(f"transformer.attentions.#.{one}_lin" for one in "qkv"),
    "encoder.stack.blocks.#.mixer.part.output": "transformer.attentions.#.out_lin",
    "encoder.stack.blocks.#.mixer.residual.norm": "transformer.layer_norm1.#",
    "encoder.stack.blocks.#.feed_forward.part.up": "transformer.ffns.#.lin1",
    "encoder.stack.blocks.#.feed_forward.part.down": "transformer.ffns.#.lin2",
    "encoder.stack.blocks.#.feed_forward.residual.norm": "transformer.layer_norm2.#",
    "heads.masked-lm": "pred_layer.proj",
}


def names_of(recipe: Recipe) -> Names:
    return {**NAMES, **TASKS.names(recipe)}


PARTS = (
    *("embeddings", "position_embeddings", "lang_embeddings"),
    *("layer_norm_emb", "attentions", "layer_norm1", "ffns", "layer_norm2", "position_ids"),
)

LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="transformer.",
    kinds=frozenset({"masked-lm"}),
    renamed={rf"^(?=({'|'.join(PARTS)})(\.|$))": "transformer."},
    ignored=(r"transformer\.position_ids", r"pred_layer\.proj\.weight"),
)
