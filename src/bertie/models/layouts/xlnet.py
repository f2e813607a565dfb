"""XLNet's folder in `transformers`: XLNetModel, XLNetLMHeadModel, and its task models. Its rows are padded on the left.

Most of its weights are [H, N, D], with what enters as the first axis. It has one rate of dropout, and in training drops
at a few places more than bertie: inside the feed-forward, from the waves of distances, and after the last layer.
"""

from typing import Any

from bertie.data.shapes import Pairs
from bertie.models.layouts.labels import ANSWERS, CHOICE, ROWS, TOKENS
from bertie.models.layouts.layout import Config, Entry, HFLayout, both, only
from bertie.models.layouts.post_norm import activation_of, has, hf_activation, if_expressible, refuse_unknown
from bertie.models.layouts.task_heads import HeadNames, TaskHeads
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.heads import SequenceHeadSpec, VocabularyHeadSpec
from bertie.nn.relative import RelativeSpec
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


def config(recipe: Recipe) -> dict[str, Any] | None:
    return if_expressible(recipe, write_config, recipe_of, entries_of)


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
        "ff_activation": hf_activation(block.feed_forward.activation),
        "dropout": block.residual.dropout,
        "layer_norm_eps": block.residual.norm_eps,
        "initializer_range": encoder.initial_std,
        "mem_len": block.mixer.memory_length or None,
        **PLAIN,
        **({"tie_word_embeddings": predicted.head.tied} if predicted else {}),
        **TASKS.config(recipe),
    }


def entries_of(recipe: Recipe) -> list[Entry]:
    encoder = recipe.encoder
    num_heads: int = encoder.stack.block.mixer.num_heads  # type: ignore[union-attr]
    shape = (encoder.width, num_heads, encoder.width // num_heads)
    entries = [only("encoder.embeddings.tables.tokens.weight", "transformer.word_embedding.weight")]
    entries += TASKS.entries(recipe)
    for number in range(encoder.stack.depth):
        entries += layer_entries(f"encoder.stack.blocks.{number}", f"transformer.layer.{number}", shape)
    for objective in recipe.objectives:
        if isinstance(objective, PermutationLM):
            ours = f"heads.{objective.kind}"
            entries.append(Entry(f"{ours}.start", ("transformer.mask_emb",), shape=(1, 1, encoder.width)))
            entries.append(only(f"{ours}.head.bias", "lm_loss.bias"))
            if not objective.head.tied:
                entries.append(only(f"{ours}.head.weight", "lm_loss.weight"))
    return entries


def layer_entries(ours: str, theirs: str, shape: tuple[int, int, int]) -> list[Entry]:
    score, attention = f"{ours}.mixer.part.scorer.reference.score", f"{theirs}.rel_attn"
    queries_keys_values = tuple(f"{attention}.{name}" for name in ("q", "k", "v"))
    return [
        Entry(f"{ours}.mixer.part.project.weight", queries_keys_values, shape, turned=True),
        Entry(f"{ours}.mixer.part.output.weight", (f"{attention}.o",), shape),
        Entry(f"{score}.distance.weight", (f"{attention}.r",), shape, turned=True),
        only(f"{score}.content_bias", f"{attention}.r_w_bias"),
        only(f"{score}.distance_bias", f"{attention}.r_r_bias"),
        only(f"{score}.segment_bias", f"{attention}.r_s_bias"),
        only(f"{score}.segment_keys", f"{attention}.seg_embed"),
        *both(f"{ours}.mixer.residual.norm", f"{attention}.layer_norm"),
        *both(f"{ours}.feed_forward.part.up", f"{theirs}.ff.layer_1"),
        *both(f"{ours}.feed_forward.part.down", f"{theirs}.ff.layer_2"),
        *both(f"{ours}.feed_forward.residual.norm", f"{theirs}.ff.layer_norm"),
    ]


LAYOUT = HFLayout(
    recipe=recipe_of,
    config=config,
    entries=entries_of,
    prefix="transformer.",
    kinds=frozenset({"permutation-lm"}),
    renamed={r"^(?=word_embedding\.|mask_emb$|layer\.)": "transformer."},
    # What the second stream begins with is the objective's; an encoder alone has no second stream.
    ignored=(r"transformer\.mask_emb", r"lm_loss\.weight"),
    fitting=TASKS.fitting,
)
