"""Predicts tokens in a random order, each from those before it in that order (permutation language model). A second
stream knows the position of the predicted token but not the token. XLNet, sections 2.2 and 2.3."""

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
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead, VocabularyHeadSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.memory import LayerMemory
from bertie.nn.stack import Stack
from bertie.nn.visibility import Permutation
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective, Prediction, Vocabulary

FACTS = ("order", "segments", "documents")  # about tokens, which scores and visibilities may use
BEFORE = "before_"  # the prefix of fields about tokens that are only remembered


class TwoStreams(nn.Module):
    """The first state of the query stream, the same at every position, and the head at its end."""

    def __init__(self, width: int, head: VocabularyHead):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(width))
        self.head = head

    def memory(self, encoder: Encoder, batch: Batch) -> Sequence[LayerMemory | None]:
        """Returns what each layer remembers of the tokens before, without gradients."""
        fields = {name: name.removeprefix(BEFORE) for name in batch.fields if name.startswith(BEFORE)}
        memory = None
        if fields and len(batch.tensor(BEFORE + "tokens")):
            with torch.no_grad():
                memory = encoder(batch.renamed(fields)).memory
        return [None] * len(encoder.stack.layers()) if memory is None else memory.layers

    def query_states(self, encoder: Encoder, batch: Batch) -> Tensor:
        """Returns [P, H], the states after the last block, one for each predicted token."""
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
            if number + 1 < len(stack.blocks):  # the last content states are never read
                content, _ = block(content, content, seeing.seen_by(visibility), memory[number])
        return stack.final_norm(query)


def picked(rows: Ragged, places: Pointers) -> Ragged:
    """Picks the values at some positions of each row."""
    return Ragged(rows.host.values[places.host.values], places.lengths).to(rows.device)


def divided(sample: Sample, share: float) -> Sample:
    """Separates the first tokens, with their fields, from the others: at least one, or none for a share of 0."""
    length = len(np.asarray(sample["tokens"]))
    count = min(max(1, int(length * share)), length - 1) if share else 0
    fields = {name: np.asarray(value) for name, value in sample.items() if np.ndim(np.asarray(value)) == 1}
    before = {BEFORE + name: value[:count] for name, value in fields.items() if name in ("tokens", "segments")}
    return {**sample, **{name: value[count:] for name, value in fields.items()}, **before}


class PermutationLM(Objective):
    """Partial prediction: the chosen tokens, a share `rate` of all, come last in the order. All others see each
    other and are seen by all. In half of the rows the first tokens, a share `remembered`, are encoded before and kept
    as memory; the other rows are trained without memory."""

    kind: Literal["permutation-lm"] = "permutation-lm"
    head_fields: ClassVar[frozenset[str]] = frozenset({"head"})
    prediction: ClassVar[Prediction | None] = Prediction("permutation_lm", "masked_targets")
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
            raise SpecError(f"two streams need one stack of blocks, not {encoder.stack.kind}")
        if "positions" in encoder.embeddings.fields:
            raise SpecError(
                "the query stream reads no tables, so it would not know positions from a table",
                hint="use scores with positions: relative or rotary",
            )
        mixer = encoder.stack.block.mixer
        if self.remembered and not (isinstance(mixer, AttentionSpec) and mixer.memory_length):
            raise SpecError(
                "the encoder has no memory", hint="give its attention a `memory_length`, or set `remembered=0`"
            )
        two = TwoStreams(encoder.width, self.head.build(encoder, vocabulary.size))
        nn.init.normal_(two.start, std=encoder.initial_std)
        return two

    def ties(self, encoder: EncoderSpec) -> Mapping[str, str]:
        return self.head.ties(encoder, "head.weight")

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"permutation_lm": len(batch.tensor("masked_targets"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, TwoStreams)
        losses, correct = owned.head.loss(owned.query_states(encoder, batch), batch.tensor("masked_targets"))
        return LossReport({"permutation_lm": Figure.over(losses)}, {"permutation_lm_accuracy": Figure.over(correct)})
