"""GPT's and GPT-2's folders in `transformers`: the encoder alone, or with the head that predicts the next token.

Their dense layers are kept transposed. Their task models have no names here.
"""

from functools import partial
from typing import Any

from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names, Reshaped
from bertie.models.layouts.post_norm import HF_ACTIVATIONS, activation_of, has, refuse_unknown
from bertie.models.layouts.task_heads import TaskHeads
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.scoring import DotProductSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import ActivationName, DenseSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.residual import AnyResidual, PostNormSpec, PreNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.visibility import Causal
from bertie.objectives.causal_lm import CausalLM

CLASSES = {"gpt2": "GPT2", "openai-gpt": "OpenAIGPT"}
RECIPE_NAMES = {"gpt2": "gpt2", "openai-gpt": "gpt"}
TABLES = {"gpt2": ("wte", "wpe"), "openai-gpt": ("tokens_embed", "positions_embed")}
TASKS = {model_type: TaskHeads(name, {}) for model_type, name in CLASSES.items()}
PLAIN = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
GPT_ACTIVATIONS: dict[str, ActivationName] = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}


def recipe_of(model_type: str, config: Config, names: frozenset[str]) -> Recipe:
    """A tied head has no tensor in the file, so that only the config tells whether there is one."""
    refuse_unknown(config, PLAIN)
    objectives: list[AnyObjective] = []
    classes = config.get("architectures") or ()
    if has(names, "lm_head.") or any(name.endswith("LMHeadModel") for name in classes):
        tied = config.get("tie_word_embeddings", True)
        objectives.append(CausalLM(head=VocabularyHeadSpec(transform=False, output_bias=False, tied=tied)))
    name, encoder = RECIPE_NAMES[model_type], encoder_of(model_type, config)
    return Recipe(name=name, tokenizer="byte-bpe", encoder=encoder, objectives=tuple(objectives))


def encoder_of(model_type: str, config: Config) -> EncoderSpec:
    width, eps, dropout = config["n_embd"], config.get("layer_norm_epsilon", 1e-5), config.get("resid_pdrop", 0.1)
    inner, residual, activation = 4 * width, PostNormSpec(norm_eps=eps, dropout=dropout), "gelu_tanh"
    any_residual: AnyResidual = residual
    if model_type == "gpt2":
        inner, any_residual = config.get("n_inner") or inner, PreNormSpec(norm_eps=eps, dropout=dropout)
        activation = activation_of({"activation_function": "gelu_new", **config}, "activation_function")
    else:
        activation = GPT_ACTIVATIONS[config.get("afn", "gelu")]
    scorer = DotProductSpec(dropout=config.get("attn_pdrop", 0.1))
    block = BlockSpec(
        mixer=AttentionSpec(num_heads=config["n_head"], scorer=scorer),
        feed_forward=DenseSpec(inner=inner, activation=activation),
        residual=any_residual,
    )
    tables = (
        TableSpec(field="tokens", size=config["vocab_size"]),
        TableSpec(field="positions", size=config["n_positions"]),
    )
    return EncoderSpec(
        width=width,
        embeddings=EmbeddingsSpec(tables=tables, norm_eps=None, dropout=config.get("embd_pdrop", 0.1)),
        stack=StackSpec(depth=config["n_layer"], block=block, visibility=(Causal(),)),
        initial_std=config.get("initializer_range", 0.02),
    )


def write_config(model_type: str, recipe: Recipe) -> dict[str, Any]:
    encoder = recipe.encoder
    block: Any = encoder.stack.block  # type: ignore[union-attr]
    sizes = {table.field: table.size for table in encoder.embeddings.tables}
    activation, inner = block.feed_forward.activation, block.feed_forward.inner
    own = {"activation_function": HF_ACTIVATIONS[activation], "n_inner": inner} if model_type == "gpt2" else {}
    if model_type != "gpt2":
        own = {"afn": {ours: theirs for theirs, ours in GPT_ACTIVATIONS.items()}[activation]}
    predicted = next((one for one in recipe.objectives if isinstance(one, CausalLM)), None)
    return {
        "architectures": [CLASSES[model_type] + ("LMHeadModel" if predicted else "Model")],
        "model_type": model_type,
        "vocab_size": sizes["tokens"],
        "n_positions": sizes["positions"],
        "n_embd": encoder.width,
        "n_layer": encoder.stack.depth,
        "n_head": block.mixer.num_heads,
        "resid_pdrop": block.residual.dropout,
        "attn_pdrop": block.mixer.scorer.dropout,
        "embd_pdrop": encoder.embeddings.dropout,
        "layer_norm_epsilon": block.residual.norm_eps,
        "initializer_range": encoder.initial_std,
        **own,
        **({"tie_word_embeddings": predicted.head.tied} if predicted else {}),
        **TASKS[model_type].config(recipe),
    }


DENSE = {
    "mixer.part.project": "attn.c_attn",
    "mixer.part.output": "attn.c_proj",
    "feed_forward.part.up": "mlp.c_fc",
    "feed_forward.part.down": "mlp.c_proj",
}


def names_of(model_type: str, recipe: Recipe) -> Names:
    width, block = recipe.encoder.width, "encoder.stack.blocks.#"
    inner: int = recipe.encoder.stack.block.feed_forward.inner  # type: ignore[union-attr]
    shapes = ((width, 3 * width), (width, width), (width, inner), (inner, width))
    tokens, positions = TABLES[model_type]
    names: dict[str, str | tuple[str, ...] | Reshaped] = {
        "encoder.embeddings.tables.tokens": f"transformer.{tokens}",
        "encoder.embeddings.tables.positions": f"transformer.{positions}",
        f"{block}.mixer.residual.norm": "transformer.h.#.ln_1",
        f"{block}.feed_forward.residual.norm": "transformer.h.#.ln_2",
        "encoder.stack.final_norm": "transformer.ln_f",
        "heads.causal-lm": "lm_head",
    }
    for (ours, theirs), shape in zip(DENSE.items(), shapes, strict=True):
        names[f"{block}.{ours}"] = f"transformer.h.#.{theirs}"
        names[f"{block}.{ours}.weight"] = Reshaped((f"transformer.h.#.{theirs}.weight",), shape, transposed=True)
    return {**names, **TASKS[model_type].names(recipe)}


LAYOUTS = {
    model_type: HFLayout(
        read=partial(recipe_of, model_type),
        write=partial(write_config, model_type),
        names=partial(names_of, model_type),
        tasks=TASKS[model_type],
        prefix="transformer.",
        kinds=frozenset({"causal-lm"}),
        renamed={rf"^(?=({'|'.join(TABLES[model_type])}|h|ln_f)\.)": "transformer."},
        ignored=(r"transformer\.(h\.\d+\.attn\.(masked_)?bias|position_ids)", r"lm_head\.weight"),
    )
    for model_type in CLASSES
}
