"""Tags of words: words enter, one tag for each leaves. Entities, parts of speech, segmentation, roles.

BERT, section 5.3: the first token of a word speaks for it. Tags come from a softmax over each word, or from a CRF over
the sentence. Where they mark spans, what leaves is always well formed in the scheme of the training data.

Axes: W words, K tags.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Places, Pointers, Ragged, Sample
from bertie.errors import CapabilityError, InputError
from bertie.nn.crf import CRF, CRFSpec, Moves
from bertie.nn.dropout import Dropout
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import Transform, TransformSpec
from bertie.nn.initial import initialised
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.label_sets import at_least_two, known, listed, sorted_labels
from bertie.tasks.metrics.entities import entity_scores, token_accuracy
from bertie.tasks.tagged_words import marks_of, tags_of_cell, words_of
from bertie.tasks.task import Answer, Example, Task, Values
from bertie.text.alignment import Aligner, Alignment, Window
from bertie.text.tag_schemes import (
    SCHEMES,
    SchemeName,
    Span,
    convert,
    guess_scheme,
    read_tag,
    spans_of,
    tags_of,
    transitions,
)
from bertie.text.tokenizer import Tokenizer

OUTSIDE = "O"
LEAST_SHARE = 1e-30  # of a tag that cannot be, so that its logarithm is a number
ENOUGH = 20_000  # sentences that tell the scheme
FEW = 0.01  # of all words may be longer where a word is a character


class Tagger(nn.Module):
    def __init__(self, output: nn.Linear, dropout: float, crf: CRF | None, transform: Transform | None = None):
        super().__init__()
        self.transform, self.dropout, self.output, self.crf = transform, Dropout(dropout), output, crf

    def forward(self, states: Tensor) -> Tensor:
        """[W, H] -> [W, K]"""
        return self.output(self.dropout(states if self.transform is None else self.transform(states)))


class Tagging(Task):
    """With `marked` a row also says which word is asked about, such as the predicate of roles: the second segment."""

    kind: Literal["tag"] = "tag"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "words": ("words", "tokens", "text", "sentence"),
        "tags": ("tags", "ner_tags", "labels", "ner", "pos", "tag"),
        "marked": ("marked", "predicate", "predicate_index"),
    }
    targets: ClassVar[Sequence[str]] = ("tags",)
    optional: ClassVar[Sequence[str]] = ("marked",)
    texts: ClassVar[Sequence[str]] = ("words",)
    main: ClassVar[str] = "f1"
    looks_at: ClassVar[tuple[str, ...] | None] = ("tagged",)
    tags: tuple[str, ...] = ()
    scheme: SchemeName | None = None  # None: plain labels of words
    marked: bool = False
    crf: CRFSpec | None = None
    alignment: Alignment = Alignment()
    dropout: float = Field(default=0.1, ge=0, lt=1)
    transform: TransformSpec | None = None  # before the output

    def fitted(self, rows: Iterable[Values]) -> Self:
        sentences, once, marked = list[list[str]](), dict[str, str](), self.marked
        num_words = num_longer = 0
        for values in rows:
            marked = marked or "marked" in values
            with suppress(InputError):
                tags = [once.setdefault(tag, tag) for tag in tags_of_cell(values.get("tags"))]
                if len(sentences) < ENOUGH:
                    sentences.append(tags)
                if isinstance(words := values.get("words"), list):
                    num_words += len(words)
                    num_longer += sum(len(str(word)) > 1 for word in words)
        later = [[tag] for tag in once] if len(sentences) == ENOUGH else []
        guess = guess_scheme([*sentences, *later])
        found = set(once) if guess is None else every_tag(once, guess.scheme)
        ordered = sorted(at_least_two(sorted_labels(found), "tag"), key=lambda tag: tag != OUTSIDE)
        by_character = num_words > 0 and num_longer <= FEW * num_words
        alignment = self.alignment.replace(unit="characters") if by_character else self.alignment
        scheme = None if guess is None else guess.scheme
        return self.replace(tags=tuple(ordered), scheme=scheme, marked=marked, alignment=alignment)

    def summary(self) -> str:
        written = "" if self.scheme is None else f" in the scheme {self.scheme}"
        unit = ", one for each character" if self.alignment.unit == "characters" else ""
        return f"{len(self.tags):,} tags{written}{unit}: {listed(self.tags)}"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Tagger:
        if self.marked and not has_two_segments(encoder):
            what = "the model has no second segment, by which a word could be marked"
            raise CapabilityError(what, hint="take a model with two segments, or leave out the column of marks")
        output = nn.Linear(encoder.output_width, len(self.tags))
        crf = None if self.crf is None else self.crf.build(len(self.tags), self._moves())
        transform = None if self.transform is None else self.transform.build(encoder.output_width)
        return initialised(Tagger(output, self.dropout, crf, transform), encoder.initial_std)

    def _moves(self) -> Moves | None:
        if self.scheme is None:
            return None
        return Moves(*map(torch.from_numpy, transitions(self.tags, self.scheme)))

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        words, line = words_of(values.get("words"), self.alignment.unit)
        tags = None
        if "tags" in values:
            tags = tags_of_cell(values["tags"])
            if len(tags) != len(words):
                raise InputError(f"there are {len(words)} words and {len(tags)} tags")
            for tag in tags:
                known(tag, self.tags, "tag")
        marks = marks_of(values.get("marked"), words) if self.marked else None
        windows = aligner_of(self.alignment, tokenizer, length)(words)  # type: ignore[arg-type]
        samples = tuple(self._sample(window, tags, marks) for window in windows.rows)
        return Example(samples, tags, {"words": words, "line": line, "windows": windows}, windows.num_truncated)

    def written(self, values: Values) -> Sequence[str]:
        return words_of(values.get("words"), self.alignment.unit)[0]

    def misspelt(self, values: Values, change: Callable[[str], str]) -> Values:
        """Word by word, so that each keeps its tag."""
        words, _ = words_of(values.get("words"), self.alignment.unit)
        marked = {"marked": marks_of(values.get("marked"), words).tolist()} if self.marked else {}
        return {**values, "words": [change(word) for word in words], **marked}

    def _sample(self, window: Window, tags: Sequence[str] | None, marks: np.ndarray | None) -> Sample:
        fields: dict[str, Any] = {"tokens": window.ids, "tagged": Places("tokens", window.places)}
        if marks is not None:
            fields["segments"] = np.where(window.words < 0, 0, marks[window.words])
        if tags is not None:
            own = tags[window.first : window.first + len(window.places)]
            if self.crf is not None and self.scheme is not None:
                # Only paths of the scheme are possible: of a span that the window cuts, the rest begins anew.
                own = convert(own, self.scheme)
            fields["tags"] = np.array([self.tags.index(tag) for tag in own])
        return fields

    def _emissions(self, owned: Tagger, states: Ragged, batch: Batch) -> Ragged:
        """[W, K], rows of words."""
        tagged = batch["tagged"]
        assert isinstance(tagged, Pointers)
        emissions = owned(states.values[tagged.values])
        return Ragged(emissions.to(owned.output.weight.dtype), tagged.lengths)  # a chain needs all bits

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, Tagger)
        emissions, targets = self._emissions(owned, encoder(batch).states, batch), batch.tensor("tags")
        correct = (emissions.values.detach().argmax(-1) == targets).float()
        if owned.crf is None:
            losses = Figure.over(F.cross_entropy(emissions.values, targets, reduction="none"))
        else:
            losses = Figure(-owned.crf.log_likelihood(emissions, targets).sum(), torch.tensor(len(targets)))
        return LossReport({"tag": losses}, {"word_accuracy": Figure.over(correct)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """Of each word, also where a CRF decides over whole sentences."""
        assert isinstance(owned, Tagger)
        emissions = self._emissions(owned, encoder(batch).states, batch)
        if owned.crf is None:
            return [F.log_softmax(emissions.values, -1)]
        return [owned.crf.marginals(emissions).values.clamp(min=LEAST_SHARE).log()]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"tag": len(batch.tensor("tags"))}

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """The number of the tag of each word of a window."""
        assert isinstance(owned, Tagger)
        emissions = self._emissions(owned, self.last_states(encoder, batch), batch)
        if owned.crf is None:
            best = emissions.with_values(emissions.values.argmax(-1))
        else:
            best = owned.crf.decode(emissions).tags
        return [row.cpu().numpy() for row in best.rows()]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        words = example.told["words"]
        tags = example.told["windows"].join([[self.tags[number] for number in output] for output in outputs])
        if self.scheme is None:
            return {"words": words, "tags": tags}
        spans = spans_of(tags)
        entities = [self._entity(span, example) for span in spans]
        return {"words": words, "tags": tags_of(spans, len(words), self.scheme), "entities": entities}

    def _entity(self, span: Span, example: Example) -> Answer:
        """Words by their numbers, `end_word` being the one after the last; of a text given whole also characters."""
        told: Answer = {"type": span.label, "first_word": span.start, "end_word": span.end}
        if (line := example.told["line"]) is not None:
            start, stop = line.part(span.start, span.end)
            return {**told, "start": start, "stop": stop, "text": line.text[start:stop]}
        between = "" if self.alignment.unit == "characters" else " "
        return {**told, "text": between.join(example.told["words"][span.start : span.end])}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        """Of spans as `seqeval` counts them. Of plain labels F1 is over all words, which is their accuracy."""
        predicted = [answer["tags"] for answer in answers]
        if self.scheme is not None:
            return entity_scores(gold, predicted)
        right = token_accuracy(gold, predicted)
        return {"f1": right, "accuracy": right}

    def wrongness(self, answer: Answer, gold: Sequence[str]) -> float:
        """How many spans, or words with plain labels, are wrong or missing."""
        if self.scheme is not None:
            return float(len(set(spans_of(gold)) ^ set(spans_of(answer["tags"]))))
        return float(sum(one != other for one, other in zip(gold, answer["tags"], strict=True)))

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        """The kind of span that each word is part of, or its tag where spans have no kind."""
        pairs = zip(gold, (answer["tags"] for answer in answers), strict=True)
        told = (zip(self.labels_of(one), self.labels_of(other), strict=True) for one, other in pairs)
        return {"word": [pair for sentence in told for pair in sentence]}

    def labels_of(self, gold: Sequence[str]) -> list[str]:
        if self.scheme is None or not any(read_tag(tag).label for tag in self.tags):
            return list(gold)
        return [read_tag(tag).label or OUTSIDE for tag in gold]


@lru_cache(4)  # what a tokenizer puts around words is asked once, not for every row
def aligner_of(alignment: Alignment, tokenizer: Tokenizer, length: int) -> Aligner:
    return alignment.build(tokenizer, length)


def every_tag(found: Collection[str], scheme: SchemeName) -> set[str]:
    """With all that the scheme can say of these labels: other rows may, and so may a span that a window cuts."""
    letters = SCHEMES[scheme].letters - {OUTSIDE}
    labels = {label for letter, label in map(read_tag, found) if letter != OUTSIDE}
    return {*found, *(f"{letter}-{label}" if label else letter for letter in letters for label in labels)}


def has_two_segments(encoder: EncoderSpec) -> bool:
    return any(table.field == "segments" and table.size > 1 for table in encoder.embeddings.tables)
