"""Permutation language model: some tokens come last in a random order, and each is told from those before it in that
order, by a second stream that knows where it stands but not what stands there. XLNet, sections 2.2 and 2.3."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Places, Pointers, Ragged, Sample
from bertie.data.masking import Chooser, NGrams
from bertie.data.shapes import SampleShape, Segments
from bertie.errors import SpecError
from bertie.nn.attention import AttentionSpec, Memory
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.stack import Stack
from bertie.nn.visibility import Permutation
from bertie.objectives.objective import Objective, Vocabulary
from bertie.objectives.report import Figure, LossReport

FACTS = ("order", "segments", "documents")  # of a token, that scores and visibilities may ask for
BEFORE = "before_"  # begins the names of fields about what is only remembered


class TwoStreams(nn.Module):
    """What the query stream begins with, the same at every place, and the head at its end."""

    def __init__(self, width: int, head: VocabularyHead):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(width))
        self.head = head

    def memory(self, encoder: Encoder, batch: Batch) -> Sequence[Memory | None]:
        """What each layer keeps of the tokens before; nothing is learned from reading them."""
        fields = {name: name.removeprefix(BEFORE) for name in batch.fields if name.startswith(BEFORE)}
        if not fields or not len(batch.tensor(BEFORE + "tokens")):
            assert isinstance(encoder.stack, Stack)
            return [None] * len(encoder.stack.blocks)
        with torch.no_grad():
            return encoder(batch.renamed(fields)).memory

    def query_states(self, encoder: Encoder, batch: Batch) -> Tensor:
        """[P, H] after the last block, one for each predicted token."""
        memory, stack = self.memory(encoder, batch), encoder.stack
        assert isinstance(stack, Stack)
        content = encoder.embeddings(batch)
        predicted = batch["masked"]
        assert isinstance(predicted, Pointers)
        query = encoder.embeddings.dropout(self.start.expand(len(predicted.values), -1))
        keys = Side.of(batch)
        facts = {name: picked(keys.fields[name], predicted) for name in FACTS if name in keys.fields}
        queries = Side(picked(keys.rows, predicted), facts)
        blind, seeing = Layout(queries, keys, Permutation(strict=True)), Layout(keys, keys, Permutation())
        for number, (block, visibility) in enumerate(zip(stack.blocks, stack.visibilities, strict=True)):
            query, _ = block(query, content, blind.seen_by(visibility), memory[number])
            if number + 1 < len(stack.blocks):  # what the content stream becomes last is seen by nobody
                content, _ = block(content, content, seeing.seen_by(visibility), memory[number])
        return stack.final_norm(query)


def picked(rows: Ragged, places: Pointers) -> Ragged:
    """The values at some places of each row."""
    return Ragged(rows.values[places.values], places.lengths)


def divided(sample: Sample, share: float) -> Sample:
    """The first tokens apart from the others, with all that is said of them; at least one, but none of a share of 0."""
    length = len(np.asarray(sample["tokens"]))
    count = min(max(1, int(length * share)), length - 1) if share else 0
    told = {name: np.asarray(value) for name, value in sample.items() if np.ndim(np.asarray(value)) == 1}
    before = {BEFORE + name: value[:count] for name, value in told.items() if name in ("tokens", "segments")}
    return {**sample, **{name: value[count:] for name, value in told.items()}, **before}


class PermutationLM(Objective):
    """Partial prediction: the chosen tokens, a share `rate` of all, come last in the order. All others see each
    other and are seen by all. In half of the rows the first tokens, a share `remembered`, are read before and kept as
    memory; the others learn to do without."""

    kind: Literal["permutation-lm"] = "permutation-lm"
    of_the_model: ClassVar[frozenset[str]] = frozenset({"head"})
    samples: SampleShape = Segments()
    choose: Chooser = NGrams(longest=5)
    rate: float = Field(default=1 / 6, gt=0, lt=1)
    remembered: float = Field(default=0.0, ge=0, lt=1)
    head: VocabularyHeadSpec = VocabularyHeadSpec(transform=False)

    def corrupt(self, sample: Sample, vocabulary: Vocabulary, rng: np.random.Generator) -> Sample:
        if self.remembered:
            sample = divided(sample, self.remembered if rng.random() < 0.5 else 0.0)
        tokens = np.asarray(sample["tokens"])
        eligible = ~np.isin(tokens, list(vocabulary.special))
        words = np.asarray(sample.get("words", np.arange(len(tokens))))
        chosen = self.choose.choose(words, eligible, max(1.0, float(eligible.sum() * self.rate)), rng).positions
        order = np.zeros(len(tokens), np.int64)
        order[chosen] = 1 + rng.permutation(len(chosen))
        return {**sample, "order": order, "masked": Places("tokens", chosen), "masked_targets": tokens[chosen]}

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> TwoStreams:
        if encoder.stack.kind != "stack":
            raise SpecError(f"two streams run through the blocks of one stack, not through {encoder.stack.kind}")
        if "positions" in encoder.embeddings.fields:
            raise SpecError(
                "the query stream reads no tables, so a table of positions would not tell it where it stands",
                hint="let the scores know positions: relative or rotary",
            )
        mixer = encoder.stack.block.mixer
        if self.remembered and not (isinstance(mixer, AttentionSpec) and mixer.memory_length):
            raise SpecError("the encoder has no memory", hint="give its attention a memory_length, or remembered=0")
        two = TwoStreams(encoder.width, self.head.build(encoder, vocabulary.size))
        nn.init.normal_(two.start, std=encoder.initial_std)
        return two

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties("head.weight")

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"permutation_lm": len(batch.tensor("masked_targets"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, TwoStreams)
        losses, correct = owned.head.loss(owned.query_states(encoder, batch), batch.tensor("masked_targets"))
        return LossReport({"permutation_lm": Figure.over(losses)}, {"permutation_lm_accuracy": Figure.over(correct)})
