"""An encoder and decoder from test-only parts: an objective that owns a decoder, which looks at the encoder's states.

The batch has two sequences, `source` and `target`; the decoder is the shared encoder with causal visibility and cross
attention, and memory between calls is its cache between steps.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from tests.contracts.planted import Rule, draw_batch, measure, save_and_load, tiny_block, tiny_encoder, train
from torch import Tensor, nn

from bertie.batch import Batch, Ragged, Sample
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.attention import AttentionSpec, Memory
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.nn.stack import StackSpec
from bertie.nn.visibility import Causal
from bertie.objectives.objective import Objective, Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.spec import Spec

NUM_WORDS = 16
LENGTHS = (3, 6)
BOUNDARY = 0  # the target starts and ends with it, the source ends with it


def reversals(related: bool = True) -> Rule:
    """Distinct words, and the same words from last to first; or, unrelated, as many others."""

    def draw(rng: np.random.Generator) -> Sample:
        length = rng.integers(LENGTHS[0], LENGTHS[1] + 1)
        words = 1 + rng.permutation(NUM_WORDS)
        target = words[:length][::-1] if related else words[length : 2 * length]
        return {"source": np.append(words[:length], BOUNDARY), "target": target.copy()}

    return draw


RULE = reversals()


class Parallel(Spec):
    """Two sequences that belong together: `source` and `target`."""

    kind: Literal["parallel"] = "parallel"


class Decoder(nn.Module):
    def __init__(self, decoder: Encoder, head: VocabularyHead):
        super().__init__()
        self.decoder, self.head = decoder, head


class Translation(Objective):
    kind: Literal["translation"] = "translation"
    samples: Parallel = Parallel()
    decoder: StackSpec

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        target = np.asarray(sample["target"])
        return {**sample, "given": np.insert(target, 0, BOUNDARY), "wanted": np.append(target, BOUNDARY)}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Decoder:
        decoder = encoder.replace(stack=self.decoder).build()
        return Decoder(decoder, VocabularyHeadSpec().build(encoder, vocabulary.size))

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        table = "embeddings.tables.tokens.weight"
        return {f"decoder.{table}": table, "head.weight": table}

    def loss(self, owned: nn.Module, encoder: nn.Module, batch: Batch) -> LossReport:
        assert isinstance(owned, Decoder)
        context = encoder(batch.renamed({"source": "tokens"})).context()
        states = owned.decoder(batch.renamed({"given": "tokens"}), context=context).states.values
        logits, targets = owned.head(states), batch.tensor("wanted")
        losses = F.cross_entropy(logits, targets, reduction="none")
        correct = (logits.detach().argmax(-1) == targets).float()
        return LossReport({"translation": Figure.over(losses)}, {"accuracy": Figure.over(correct)})


class TranslationRecipe(Recipe):
    objectives: tuple[Translation, ...]  # type: ignore[assignment]


def new_model() -> Model:
    block = tiny_block(cross=True).replace(mixer=AttentionSpec(num_heads=2, memory_length=16))
    decoder = StackSpec(depth=1, block=block, visibility=(Causal(),))
    recipe = TranslationRecipe(
        name="translation", encoder=tiny_encoder(NUM_WORDS, width=48), objectives=(Translation(decoder=decoder),)
    )
    return Model.new(recipe, seed=0)


@torch.no_grad()
def decode(model: Model, source: Ragged, with_memory: bool) -> Tensor:
    """[B, steps] the likeliest next token, again and again; the decoder reads all it wrote, or the last token alone."""
    owned = model.heads["translation"].eval()
    assert isinstance(owned, Decoder)
    context = model.encoder(Batch({"tokens": source})).context()
    written = torch.full((source.num_rows, 1), BOUNDARY)
    memory: tuple[Memory | None, ...] | None = None
    for step in range(LENGTHS[1] + 1):
        if with_memory:
            ones = torch.ones(source.num_rows, dtype=torch.int64)
            last = {"tokens": Ragged(written[:, -1], ones), "positions": Ragged(step * ones, ones)}
            decoded = owned.decoder(Batch(last), memory=memory, context=context)
            memory = decoded.memory
        else:
            decoded = owned.decoder(Batch({"tokens": Ragged.of(written.unbind())}), context=context)
        states = decoded.states
        ends = states.starts + states.lengths - 1
        written = torch.cat([written, owned.head(states.values[ends]).argmax(-1, keepdim=True)], 1)
    return written[:, 1:]


def share_right(decoded: Tensor, wanted: Ragged) -> float:
    right = [row[: len(want)] == want for row, want in zip(decoded, wanted.rows(), strict=True)]
    return float(torch.cat(right).float().mean())


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    model = new_model()
    batch = draw_batch(model, RULE, 100, (987_654,))
    source, wanted = batch.ragged("source"), batch.ragged("wanted")
    assert share_right(decode(model, source, with_memory=False), wanted) < 0.2
    train(model, RULE, steps=300)
    decoded = decode(model, source, with_memory=False)
    assert share_right(decoded, wanted) > 0.9
    assert torch.equal(decode(model, source, with_memory=True), decoded)
    # Of targets that have nothing to do with their sources only the end can be told.
    assert measure(model, reversals(related=False))["accuracy"] < 0.3
    loaded = save_and_load(model, tmp_path / "model", TranslationRecipe, batch)
    table = loaded.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert loaded.get_parameter("heads.translation.decoder.embeddings.tables.tokens.weight") is table
    assert torch.equal(decode(loaded, source, with_memory=False), decoded)


def test_the_decoder_sees_the_whole_source_and_what_it_wrote() -> None:
    model = new_model()
    batch = draw_batch(model, RULE, 3, (5,))
    owned = model.heads["translation"]
    assert isinstance(owned, Decoder)
    seen: dict[str, Tensor] = {}

    def keep(name: str, table: nn.Module) -> None:
        table.register_forward_hook(lambda _part, _given, output: seen.__setitem__(name, output))

    keep("source", model.encoder.embeddings.tables["tokens"])
    keep("given", owned.decoder.embeddings.tables["tokens"])
    context = model.encoder(batch.renamed({"source": "tokens"})).context()
    states = owned.decoder(batch.renamed({"given": "tokens"}), context=context).states
    source = batch.ragged("source")
    for token, row in enumerate(states.row_ids):
        inputs = [seen["source"], seen["given"]]
        of_source, of_given = torch.autograd.grad(states.values[token].square().sum(), inputs, retain_graph=True)
        assert torch.equal(of_source.abs().sum(-1) > 0, source.row_ids == row)
        written = (states.row_ids == row) & (states.positions <= states.positions[token])
        assert torch.equal(of_given.abs().sum(-1) > 0, written)
