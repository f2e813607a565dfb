"""An encoder and a decoder: the recipe has both, and a test-only objective trains them together.

The batch has two sequences, `source` and `target`; the decoder is an encoder with causal visibility and cross
attention, and memory between calls is its cache between steps.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from tests.contracts.planted import (
    Rule,
    draw_batch,
    measure,
    save_and_load,
    tiny_block,
    tiny_embeddings,
    tiny_encoder,
    train,
)
from torch import Tensor, nn

from bertie.batch import Batch, Ragged, Sample, collate
from bertie.data.shapes import Parallel
from bertie.errors import SpecError
from bertie.inspection.composition import compose
from bertie.inspection.costs import forward_flops
from bertie.inspection.parameters import count_parameters
from bertie.models.model import Model
from bertie.models.recipe import OBJECTIVES, Recipe
from bertie.models.task_recipe import task_recipe
from bertie.models.variant import with_recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.encoder import DecoderSpec, Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.nn.memory import Memory
from bertie.nn.stack import StackSpec
from bertie.nn.visibility import Causal
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Vocabulary
from bertie.tasks.classification import Classify
from bertie.train.instances import split_rows
from bertie.train.loop import count_tokens

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


class Translation(Objective):
    kind: Literal["translation"] = "translation"
    samples: Parallel = Parallel()
    head: VocabularyHeadSpec = VocabularyHeadSpec()

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        target = np.asarray(sample["target"])
        return {**sample, "given": np.insert(target, 0, BOUNDARY), "wanted": np.append(target, BOUNDARY)}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> VocabularyHead:
        return self.head.build(encoder, vocabulary.size)

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties(encoder)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, VocabularyHead) and encoder.decoder is not None
        context = encoder(batch.renamed({"source": "tokens"})).context()
        states = encoder.decoder(batch.renamed({"given": "tokens"}), context=context).states.values
        losses, correct = owned.loss(states, batch.tensor("wanted"))
        return LossReport({"translation": Figure.over(losses)}, {"accuracy": Figure.over(correct)})


@pytest.fixture(autouse=True)
def known_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES, "translation", Translation)


def new_decoder(encoder: EncoderSpec) -> DecoderSpec:
    block = tiny_block(cross=True).replace(mixer=AttentionSpec(num_heads=2, memory_length=16))
    stack = StackSpec(depth=1, block=block, visibility=(Causal(),))
    return DecoderSpec(width=encoder.width, embeddings=encoder.embeddings, stack=stack, initial_std=encoder.initial_std)


def new_model() -> Model:
    encoder = tiny_encoder(NUM_WORDS, width=48)
    recipe = Recipe(name="translation", encoder=encoder, decoder=new_decoder(encoder), objectives=(Translation(),))
    return Model.new(recipe, seed=0)


def parts_of(model: Model) -> tuple[Encoder, Encoder, VocabularyHead]:
    head = model.heads["translation"].eval()
    assert isinstance(head, VocabularyHead) and model.decoder is not None
    return model.encoder.eval(), model.decoder.eval(), head


@torch.no_grad()
def decode(model: Model, source: Ragged, with_memory: bool) -> Tensor:
    """[B, steps] the likeliest next token, again and again; the decoder reads all it wrote, or the last token alone."""
    encoder, decoder, head = parts_of(model)
    context = encoder(Batch({"tokens": source})).context()
    written = torch.full((source.num_rows, 1), BOUNDARY)
    memory: Memory | None = None
    for step in range(LENGTHS[1] + 1):
        if with_memory:
            ones = torch.ones(source.num_rows, dtype=torch.int64)
            last = {"tokens": Ragged(written[:, -1], ones), "positions": Ragged(step * ones, ones)}
            decoded = decoder(Batch(last), memory=memory, context=context)
            memory = decoded.memory
        else:
            decoded = decoder(Batch({"tokens": Ragged.of(written.unbind())}), context=context)
        states = decoded.states
        ends = states.starts + states.lengths - 1
        written = torch.cat([written, head(states.values[ends]).argmax(-1, keepdim=True)], 1)
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
    loaded = save_and_load(model, tmp_path / "model", Recipe, batch)
    table = loaded.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert loaded.get_parameter("decoder.embeddings.tables.tokens.weight") is table
    assert loaded.get_parameter("heads.translation.weight") is table
    assert torch.equal(decode(loaded, source, with_memory=False), decoded)


def test_the_decoder_sees_the_whole_source_and_what_it_wrote() -> None:
    model = new_model()
    batch = draw_batch(model, RULE, 3, (5,))
    encoder, decoder, _ = parts_of(model)
    seen: dict[str, Tensor] = {}

    def keep(name: str, table: nn.Module) -> None:
        table.register_forward_hook(lambda _part, _given, output: seen.__setitem__(name, output))

    keep("source", encoder.get_submodule("embeddings.tables.tokens"))
    keep("given", decoder.get_submodule("embeddings.tables.tokens"))
    context = encoder(batch.renamed({"source": "tokens"})).context()
    states = decoder(batch.renamed({"given": "tokens"}), context=context).states
    source = batch.ragged("source")
    for token, row in enumerate(states.row_ids):
        inputs = [seen["source"], seen["given"]]
        of_source, of_given = torch.autograd.grad(states.values[token].square().sum(), inputs, retain_graph=True)
        assert torch.equal(of_source.abs().sum(-1) > 0, source.row_ids == row)
        written = (states.row_ids == row) & (states.positions <= states.positions[token])
        assert torch.equal(of_given.abs().sum(-1) > 0, written)


def test_the_decoder_survives_fine_tuning_and_saving(tmp_path: Path) -> None:
    """A task trains the encoder; the decoder is saved as it was, and translation can go on from the folder."""
    model = new_model()
    train(model, RULE, steps=20)
    decoder = {name: tensor.clone() for name, tensor in model.state_dict().items() if name.startswith("decoder.stack")}
    assert decoder
    tasks = task_recipe(model.recipe, Classify(labels=("one", "two")))
    assert tasks.decoder == model.recipe.decoder
    tuned = with_recipe(model, tasks, seed=1)
    optimizer = torch.optim.AdamW(tuned.parameters(), 1e-2)
    rows = [
        {"tokens": np.array([1, 2, 3]), "label": np.asarray(0)},
        {"tokens": np.array([4, 2]), "label": np.asarray(1)},
    ]
    before = tuned.get_parameter("encoder.stack.blocks.0.feed_forward.part.up.weight").detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        tuned.loss(collate(rows)).loss().backward()
        optimizer.step()
    assert not torch.equal(tuned.get_parameter("encoder.stack.blocks.0.feed_forward.part.up.weight"), before)
    loaded = save_and_load(tuned, tmp_path / "model", Recipe, collate(rows))
    assert loaded.decoder is not None and loaded.encoder.decoder is loaded.decoder
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in decoder.items())
    again = with_recipe(loaded, model.recipe, seed=2)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in decoder.items())


def test_tokens_are_counted_where_no_field_is_called_tokens() -> None:
    model = new_model()
    rng = np.random.default_rng(0)
    samples = [RULE(rng) for _ in range(6)]
    (batch,) = split_rows(samples, 1000)
    sizes = sorted(2 * len(np.asarray(sample["target"])) + 1 for sample in samples)
    assert sorted(batch.row_sizes) == sizes and count_tokens([batch]) == sum(sizes)
    assert forward_flops(model).training_batch(draw_batch(model, RULE, 4, (5,))) > 0
    parts = {part.name: part.num_parameters for part in compose(model.recipe).parts}
    counted = count_parameters(model)
    assert parts["decoder"] == counted.decoder > 0
    assert sum(parts.values()) == counted.total == sum(one.numel() for one in model.parameters())


def test_a_decoder_that_cannot_work_is_refused() -> None:
    encoder = tiny_encoder(NUM_WORDS, width=48)
    decoder = new_decoder(encoder)
    with pytest.raises(SpecError, match="the decoder is 48 wide, the encoder's states 32"):
        Recipe.parse({"name": "own", "encoder": tiny_encoder(NUM_WORDS), "decoder": decoder})
    with pytest.raises(SpecError, match="that all have cross attention"):
        decoder.changed({"stack.block.cross": None})
    other = decoder.replace(embeddings=tiny_embeddings(NUM_WORDS + 1))
    with pytest.raises(SpecError, match="cannot share a table of tokens"):
        Recipe.parse({"name": "own", "encoder": encoder, "decoder": other})
    apart = Model.new(Recipe(name="own", encoder=encoder, decoder=other.replace(tied=False)))
    table = apart.get_parameter("decoder.embeddings.tables.tokens.weight")
    assert table is not apart.get_parameter("encoder.embeddings.tables.tokens.weight")
