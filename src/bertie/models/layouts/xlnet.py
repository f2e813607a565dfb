"""XLNet's folder in `transformers`: XLNetModel, XLNetLMHeadModel, and its task models. Its rows are padded on the left.

Most of its weights are [H, N, D], with what enters as the first axis. It has one rate of dropout, and in training drops
at a few places more than bertie: inside the feed-forward, from the waves of distances, and after the last layer.
"""

from typing import Any

from bertie.data.shapes import Pairs
from bertie.models.layouts.hf_labels import ANSWERS, CHOICE, ROWS, TOKENS
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Config, Names, Reshaped
from bertie.models.layouts.post_norm import HF_ACTIVATIONS, activation_of, has, refuse_unknown
from bertie.models.layouts.task_heads import HeadNames, TaskHeads
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.attention.relative import RelativeSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.heads import SequenceHeadSpec, VocabularyHeadSpec
from bertie.nn.residual import PostNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.objectives.permutation_lm import PermutationLM

PLAIN = {"attn_type": "bi", "bi_data": False, "clamp_len": -1, "reuse_len": None}
PER_ROW = HeadNames(
    "logits_proj",
    "sequence_summary.summary",
    head=lambda config: SequenceHeadSpec(tokens="last"),
    settings={"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"},
    dropout="summary_last_dropout",
    rate=0.1,
)
TASKS = TaskHeads(
    "XLNet",
    {
        ROWS: PER_ROW,
        CHOICE: PER_ROW,
        TOKENS: HeadNames("classifier", dropout=None),
        ANSWERS: HeadNames("qa_outputs", suffix="Simple"),
    },
)


def recipe_of(config: Config, names: frozenset[str]) -> Recipe:
    encoder = encoder_of(config)
    num_heads: int = encoder.stack.block.mixer.num_heads  # type: ignore[union-attr]
    refuse_unknown(config, {**PLAIN, "d_head": encoder.width // num_heads})
    objectives: list[AnyObjective] = []
    if (task := TASKS.read(config, names)) is not None:
        objectives.append(task)
    elif has(names, "lm_loss."):
        head = VocabularyHeadSpec(transform=False, tied=config.get("tie_word_embeddings", True))
        objectives.append(PermutationLM(samples=Pairs(), head=head))
    return Recipe(name="xlnet", tokenizer="unigram", encoder=encoder, objectives=tuple(objectives))


def encoder_of(config: Config) -> EncoderSpec:
    dropout = config.get("dropout", 0.1)
    block = BlockSpec(
        mixer=AttentionSpec(
            num_heads=config["n_head"],
            scorer=RelativeSpec(dropout=dropout, segments=True),
            memory_length=config.get("mem_len", 512) or 0,
            bias=False,
        ),
        feed_forward=DenseSpec(inner=config["d_inner"], activation=activation_of(config, "ff_activation")),
        residual=PostNormSpec(norm_eps=config.get("layer_norm_eps", 1e-12), dropout=dropout),
    )
    tokens = TableSpec(field="tokens", size=config["vocab_size"])
    return EncoderSpec(
        width=config["d_model"],
        embeddings=EmbeddingsSpec(tables=(tokens,), norm_eps=None, dropout=dropout),
        stack=StackSpec(depth=config["n_layer"], block=block),
        initial_std=config.get("initializer_range", 0.02),
    )


def write_config(recipe: Recipe) -> dict[str, Any]:
    encoder = recipe.encoder
    block: Any = encoder.stack.block  # type: ignore[union-attr]
    predicted = next((one for one in recipe.objectives if isinstance(one, PermutationLM)), None)
    return {
        "architectures": ["XLNetLMHeadModel" if predicted else "XLNetModel"],
        "model_type": "xlnet",
        "vocab_size": recipe.vocab_size,
        "d_model": encoder.width,
        "n_layer": encoder.stack.depth,
        "n_head": block.mixer.num_heads,
        "d_head": encoder.width // block.mixer.num_heads,
        "d_inner": block.feed_forward.inner,
        "ff_activation": HF_ACTIVATIONS[block.feed_forward.activation],
        "dropout": block.residual.dropout,
        "layer_norm_eps": block.residual.norm_eps,
        "initializer_range": encoder.initial_std,
        "mem_len": block.mixer.memory_length or None,
        **PLAIN,
        **({"tie_word_embeddings": predicted.head.tied} if predicted else {}),
        **TASKS.config(recipe),
    }


LAYER: Names = {
    "mixer.part.scorer.score.content_bias": "rel_attn.r_w_bias",
    "mixer.part.scorer.score.distance_bias": "rel_attn.r_r_bias",
    "mixer.part.scorer.score.segment_bias": "rel_attn.r_s_bias",
    "mixer.part.scorer.score.segment_keys": "rel_attn.seg_embed",
    "mixer.residual.norm": "rel_attn.layer_norm",
    "feed_forward.part.up": "ff.layer_1",
    "feed_forward.part.down": "ff.layer_2",
    "feed_forward.residual.norm": "ff.layer_norm",
}


def names_of(recipe: Recipe) -> Names:
    width = recipe.encoder.width
    num_heads: int = recipe.encoder.stack.block.mixer.num_heads  # type: ignore[union-attr]
    shape, mixer = (width, num_heads, width // num_heads), "encoder.stack.blocks.#.mixer.part"
    queries_keys_values = tuple(f"transformer.layer.#.rel_attn.{name}" for name in "qkv")
    distance = f"{mixer}.scorer.score.distance.weight"
    return {
        "encoder.embeddings.tables.tokens": "transformer.word_embedding",
        **{f"encoder.stack.blocks.#.{ours}": f"transformer.layer.#.{theirs}" for ours, theirs in LAYER.items()},
        f"{mixer}.project.weight": Reshaped(queries_keys_values, shape, transposed=True),
        f"{mixer}.output.weight": Reshaped(("transformer.layer.#.rel_attn.o",), shape),
        distance: Reshaped(("transformer.layer.#.rel_attn.r",), shape, transposed=True),
        "heads.permutation-lm.start": Reshaped(("transformer.mask_emb",), (1, 1, width)),
        "heads.permutation-lm.head": "lm_loss",
        **TASKS.names(recipe),
    }


LAYOUT = HFLayout(
    read=recipe_of,
    write=write_config,
    names=names_of,
    tasks=TASKS,
    prefix="transformer.",
    kinds=frozenset({"permutation-lm"}),
    renamed={r"^(?=word_embedding\.|mask_emb$|layer\.)": "transformer."},
    # What the second stream begins with is the objective's; an encoder alone has no second stream.
    ignored=(r"transformer\.mask_emb", r"lm_loss\.weight"),
)
