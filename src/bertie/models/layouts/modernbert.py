"""ModernBERT's folder in `transformers`: ModernBertModel, ModernBertForMaskedLM, and its task models.

In training `transformers` drops also after the attention's output, at the rate of its weights, and inside the
feed-forward instead of after it.
"""

from collections.abc import Sequence
from typing import Any

from bertie.errors import FolderError, SpecError
from bertie.models.layouts.hf_labels import ANSWERS, CHOICE, ROWS, TOKENS
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names
from bertie.models.layouts.post_norm import HF_ACTIVATIONS, activation_of, has, refuse_unknown
from bertie.models.layouts.task_heads import HeadNames, TaskHeads, task_in, transform_of
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.rotary import RotarySpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import GatedSpec
from bertie.nn.heads import RowState, SequenceHeadSpec, TransformSpec, VocabularyHeadSpec
from bertie.nn.residual import PreNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.visibility import Full, Visibility, Window
from bertie.objectives.masked_lm import MaskedLM

FULL, LOCAL = "full_attention", "sliding_attention"
BASES = {FULL: 160_000.0, LOCAL: 10_000.0}
OLD_BASES = {FULL: "global_rope_theta", LOCAL: "local_rope_theta"}
LOCAL_ATTENTION = 128  # tokens that a local layer sees, half of them to either side
POOLING: dict[str, RowState] = {"cls": "first", "mean": "mean"}


# --- config -> recipe


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    refuse_unknown(config, {"rope_scaling": None})
    objectives: list[AnyObjective] = []
    if (task := TASKS.read(config, names)) is not None:
        objectives.append(task)
    elif has(names, "decoder."):
        objectives.append(MaskedLM(rate=0.3, head=head_of(config)))
    return Recipe(name="modernbert", tokenizer="byte-bpe", encoder=encoder_of(config), objectives=tuple(objectives))


def task_head_of(config: Config) -> SequenceHeadSpec:
    bias = config.get("norm_bias", False)
    refuse_unknown(config, {"classifier_bias": bias})
    activation = activation_of(config, "classifier_activation")
    transform = TransformSpec(activation=activation, norm_eps=config.get("norm_eps", 1e-5), bias=bias)
    return SequenceHeadSpec(tokens=POOLING[config.get("classifier_pooling", "cls")], transform=transform)


HEAD = HeadNames("classifier", "head.dense", "head.norm", head=task_head_of, rate=0.0)
TASKS = TaskHeads("ModernBert", dict.fromkeys((ROWS, CHOICE, TOKENS, ANSWERS), HEAD))


def head_of(config: Config) -> VocabularyHeadSpec:
    bias = config.get("norm_bias", False)
    refuse_unknown(config, {"classifier_bias": bias, "decoder_bias": True})
    return VocabularyHeadSpec(
        activation=activation_of(config, "classifier_activation"),
        norm_eps=config.get("norm_eps", 1e-5),
        bias=bias,
        tied=config.get("tie_word_embeddings", True),
    )


def encoder_of(config: Config) -> EncoderSpec:
    eps, norm_bias = config.get("norm_eps", 1e-5), config.get("norm_bias", False)

    def block(kind: str) -> BlockSpec:
        scorer = RotarySpec(base=base_of(config, kind), dropout=config.get("attention_dropout", 0.0))
        activation, bias = activation_of(config, "hidden_activation"), config.get("mlp_bias", False)
        return BlockSpec(
            mixer=AttentionSpec(
                num_heads=config["num_attention_heads"], scorer=scorer, bias=config.get("attention_bias", False)
            ),
            feed_forward=GatedSpec(inner=config["intermediate_size"], activation=activation, bias=bias),
            residual=PreNormSpec(norm_eps=eps, dropout=config.get("mlp_dropout", 0.0), bias=norm_bias),
        )

    seen = {FULL: Full(), LOCAL: Window(reach=config.get("local_attention", LOCAL_ATTENTION) // 2)}
    cycle = shortest_cycle(layer_kinds(config))
    first, *others = (block(kind) for kind in cycle)
    return EncoderSpec(
        width=config["hidden_size"],
        embeddings=EmbeddingsSpec(
            tables=(TableSpec(field="tokens", size=config["vocab_size"]),),
            norm_eps=eps,
            norm_bias=norm_bias,
            dropout=config.get("embedding_dropout", 0.0),
        ),
        stack=StackSpec(
            depth=config["num_hidden_layers"],
            block=first,
            next_blocks=tuple(others),
            visibility=tuple(seen[kind] for kind in cycle),
            input_normed=True,
        ),
        initial_std=config.get("initializer_range", 0.02),
    )


def layer_kinds(config: Config) -> list[str]:
    """Older configs say only which layers are global: every n-th, from the first one on."""
    depth = config["num_hidden_layers"]
    kinds = config.get("layer_types")
    if kinds is None:
        every = config.get("global_attn_every_n_layers", 3)
        kinds = [LOCAL if number % every else FULL for number in range(depth)]
    if len(kinds) != depth or not set(kinds) <= {FULL, LOCAL}:
        raise FolderError(f"config.json has layer_types {kinds}, which should be {depth} times {FULL} or {LOCAL}")
    return kinds


def shortest_cycle(kinds: Sequence[str]) -> Sequence[str]:
    for size in range(1, len(kinds)):
        if all(kind == kinds[number % size] for number, kind in enumerate(kinds)):
            return kinds[:size]
    return kinds or [FULL]


def base_of(config: Config, kind: str) -> float:
    rotary: Config = (config.get("rope_parameters") or {}).get(kind) or {}
    refuse_unknown(rotary, {"rope_type": "default"})
    return rotary.get("rope_theta", config.get(OLD_BASES[kind], BASES[kind]))


# --- recipe -> config


def unrolled(recipe: Recipe) -> Recipe:
    """With each layer's block and visibility, so that two cycles that say the same are equal."""
    stack = recipe.encoder.stack
    if not isinstance(stack, StackSpec) or not stack.depth:
        raise SpecError("has no such stack")
    first, *others = (stack.layer_spec(number) for number in range(stack.depth))
    changes = {"block": first, "next_blocks": tuple(others), "visibility": visibilities(stack)}
    return recipe.changed({f"encoder.stack.{name}": value for name, value in changes.items()})


def visibilities(stack: StackSpec) -> tuple[Visibility, ...]:
    return tuple(stack.visibility[number % len(stack.visibility)] for number in range(stack.depth))


def write_config(recipe: Recipe) -> dict[str, Any]:
    encoder = recipe.encoder
    stack = encoder.stack
    assert isinstance(stack, StackSpec)
    block: Any = stack.block
    scorers: list[Any] = [one.mixer.scorer for one in (block, *stack.next_blocks)]
    windows = [one for one in visibilities(stack) if isinstance(one, Window)]
    kinds = [LOCAL if isinstance(one, Window) else FULL for one in visibilities(stack)]
    bases = {**BASES, **{kind: scorer.base for kind, scorer in zip(kinds, scorers, strict=True)}}
    masked = next((one for one in recipe.objectives if isinstance(one, MaskedLM)), None)
    unknown_ids = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    return {
        "architectures": ["ModernBertForMaskedLM" if masked else "ModernBertModel"],
        "model_type": "modernbert",
        "vocab_size": recipe.vocab_size,
        "hidden_size": encoder.width,
        "num_hidden_layers": stack.depth,
        "num_attention_heads": block.mixer.num_heads,
        "intermediate_size": block.feed_forward.inner,
        "hidden_activation": HF_ACTIVATIONS[block.feed_forward.activation],
        "layer_types": kinds,
        "local_attention": 2 * windows[0].reach if windows else LOCAL_ATTENTION,
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()},
        "norm_eps": block.residual.norm_eps,
        "norm_bias": block.residual.bias,
        "attention_bias": block.mixer.bias,
        "mlp_bias": block.feed_forward.bias,
        "embedding_dropout": encoder.embeddings.dropout,
        "attention_dropout": block.mixer.scorer.dropout,
        "mlp_dropout": block.residual.dropout,
        "initializer_range": encoder.initial_std,
        "classifier_pooling": "mean",  # as the weights of its authors have it: no objective teaches the first token
        **({} if masked is None else head_config(masked.head)),
        **task_config(recipe),
        **dict.fromkeys(unknown_ids),  # those that `transformers` would put there may be none of the vocabulary
    }


def task_config(recipe: Recipe) -> dict[str, Any]:
    task = task_in(recipe)
    transform = None if task is None else transform_of(task, recipe.encoder)
    if transform is None:  # which theirs cannot do without
        return {}
    tokens: RowState = getattr(getattr(task, "head", None), "tokens", "first")
    return {
        "classifier_pooling": {ours: theirs for theirs, ours in POOLING.items()}[tokens],
        "classifier_activation": HF_ACTIVATIONS[transform.activation],
        "classifier_bias": transform.bias,
        **TASKS.config(recipe),
    }


def head_config(head: VocabularyHeadSpec) -> dict[str, Any]:
    return {
        "classifier_activation": HF_ACTIVATIONS[head.activation],
        "classifier_bias": head.bias,
        "decoder_bias": True,
        "tie_word_embeddings": head.tied,
    }


# --- names


NAMES: Names = {
    "encoder.embeddings.tables.tokens": "model.embeddings.tok_embeddings",
    "encoder.embeddings.norm": "model.embeddings.norm",
    "encoder.stack.final_norm": "model.final_norm",
    "encoder.stack.blocks.#.mixer.residual.norm": "model.layers.#.attn_norm",
    "encoder.stack.blocks.#.mixer.part.project": "model.layers.#.attn.Wqkv",
    "encoder.stack.blocks.#.mixer.part.output": "model.layers.#.attn.Wo",
    "encoder.stack.blocks.#.feed_forward.residual.norm": "model.layers.#.mlp_norm",
    "encoder.stack.blocks.#.feed_forward.part.up": "model.layers.#.mlp.Wi",
    "encoder.stack.blocks.#.feed_forward.part.down": "model.layers.#.mlp.Wo",
    "heads.masked-lm.transform.dense": "head.dense",
    "heads.masked-lm.transform.norm": "head.norm",
    "heads.masked-lm": "decoder",
}


def names_of(recipe: Recipe) -> Names:
    return {**NAMES, **TASKS.names(recipe)}


LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="model.",
    kinds=frozenset({"masked-lm"}),
    renamed={r"^(?=embeddings\.|layers\.|final_norm\.)": "model."},
    ignored=(r"decoder\.weight",),
    simplify=unrolled,
)
