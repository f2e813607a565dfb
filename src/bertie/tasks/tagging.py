"""Predicts a tag for each word: entities, parts of speech, segmentation, roles.

BERT, section 5.3: a word is represented by its first token. Tags come from a softmax over each word, or from a CRF over
the sentence. Where they mark spans, predicted tags are always well formed in the scheme of the training data.

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
from bertie.nn.heads import SequenceHeadSpec, Transform, TransformSpec
from bertie.nn.initial import initialized
from bertie.nn.products import Linear
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Vocabulary
from bertie.tasks.hf_head import TOKENS, HFHead
from bertie.tasks.label_sets import at_least_two, known, listed, sorted_labels
from bertie.tasks.metrics.entities import entity_scores, entity_scores_by_label, token_accuracy
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.labels import scores_of_counts
from bertie.tasks.metrics.majority import Majority, most_frequent
from bertie.tasks.probabilities import rounded
from bertie.tasks.tagged_words import marks_of, tags_of_cell, words_of
from bertie.tasks.task import Answer, Example, LabelPairs, Scores, Task, TaskOptions, Values
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
from bertie.text.tokenizers.alignment import Aligner, Alignment, Line, Window
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.word_splitting import SplitCounts

OUTSIDE = "O"
LEAST_SHARE = 1e-30  # probability of an impossible tag, so that its logarithm is finite
ENOUGH = 20_000  # sentences from which the scheme is guessed
FEW = 0.01  # share of longer words where words are taken for characters
SHOWN_WORDS = 12  # of a sentence, with wrong tags


class Tagger(nn.Module):
    def __init__(self, output: nn.Linear, dropout: float, crf: CRF | None, transform: Transform | None = None):
        super().__init__()
        self.transform, self.dropout, self.output, self.crf = transform, Dropout(dropout), output, crf

    def forward(self, states: Tensor) -> Tensor:
        """[W, H] -> [W, K]"""
        return self.output(self.dropout(states if self.transform is None else self.transform(states)))


class TaggingOptions(TaskOptions):
    crf: bool = Field(default=False, description="Choose tags with a CRF over the sentence instead of word by word.")

    def build(self) -> Task:
        return Tagging(crf=CRFSpec() if self.crf else None)


class Tagging(Task):
    """With `marked`, a row also marks the word that its tags depend on, such as the predicate of semantic roles: it
    gets the second segment."""

    kind: Literal["tag"] = "tag"
    about: ClassVar[str] = "Predict a tag of each word: entities, parts of speech, word boundaries."
    Options: ClassVar[type[TaskOptions]] = TaggingOptions
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "words": ("words", "tokens", "text", "sentence"),
        "tags": ("tags", "ner_tags", "labels", "ner", "pos", "tag"),
        "marked": ("marked", "predicate", "predicate_index"),
    }
    targets: ClassVar[Sequence[str]] = ("tags",)
    optional: ClassVar[Sequence[str]] = ("marked",)
    texts: ClassVar[Sequence[str]] = ("words",)
    main: ClassVar[str] = "f1"
    read_positions: ClassVar[tuple[str, ...] | None] = ("tagged",)
    tags: tuple[str, ...] = ()
    scheme: SchemeName | None = None  # None: plain labels of words
    marked: bool = False
    crf: CRFSpec | None = None
    alignment: Alignment = Alignment()
    dropout: float = Field(default=0.1, ge=0, lt=1)
    transform: TransformSpec | None = None  # before the output

    def reads_role(self, role: str) -> bool:
        return role != "marked" or self.marked or not self.tags  # as in training

    def needs_role(self, role: str) -> bool:
        return role == "marked" and self.marked

    def fitted(self, rows: Iterable[Values]) -> Self:
        sentences, once, marked = list[list[str]](), dict[str, str](), self.marked
        num_words, num_longer, counts = 0, 0, SplitCounts()
        for values in rows:
            marked = marked or "marked" in values
            with suppress(InputError):
                tags = [once.setdefault(tag, tag) for tag in tags_of_cell(values.get("tags"))]
                if len(sentences) < ENOUGH:
                    sentences.append(tags)
                if isinstance(words := values.get("words"), list):
                    num_words += len(words)
                    num_longer += sum(len(str(word)) > 1 for word in words)
                counts.add(words_of(words, self.alignment, tagged=True)[0])
        later = [[tag] for tag in once] if len(sentences) == ENOUGH else []
        guess = guess_scheme([*sentences, *later])
        found = set(once) if guess is None else every_tag(once, guess.scheme)
        ordered = sorted(at_least_two(sorted_labels(found), "tag"), key=lambda tag: tag != OUTSIDE)
        by_character = num_words > 0 and num_longer <= FEW * num_words
        unit = {"unit": "characters"} if by_character else {}
        alignment = self.alignment.replace(split=counts.split(), **unit)
        scheme = None if guess is None else guess.scheme
        return self.replace(tags=tuple(ordered), scheme=scheme, marked=marked, alignment=alignment)

    def summary(self) -> str:
        written = "" if self.scheme is None else f" in the scheme {self.scheme}"
        unit = ", one for each character" if self.alignment.unit == "characters" else ""
        return f"{len(self.tags):,} tags{written}{unit}: {listed(self.tags)}"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Tagger:
        if self.marked and not has_two_segments(encoder):
            what = "the model has no second segment with which to mark a word"
            raise CapabilityError(what, hint="choose a model with two segments, or leave out the column of marks")
        output = Linear(encoder.output_width, len(self.tags))
        crf = None if self.crf is None else self.crf.build(len(self.tags), self._moves())
        transform = None if self.transform is None else self.transform.build(encoder.output_width)
        return initialized(Tagger(output, self.dropout, crf, transform), encoder.initial_std)

    def _moves(self) -> Moves | None:
        if self.scheme is None:
            return None
        return Moves(*map(torch.from_numpy, transitions(self.tags, self.scheme)))

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        words, line = self._words(values)
        tags = None
        if "tags" in values:
            tags = tags_of_cell(values["tags"])
            if len(tags) != len(words):
                raise InputError(f"there are {len(words)} words and {len(tags)} tags")
            for tag in tags:
                known(tag, self.tags, "tag")
        marks = marks_of(values.get("marked"), words) if self.marked else None
        windows = aligner_of(self.alignment, tokenizer, max_length)(words)  # type: ignore[arg-type]
        samples = tuple(self._sample(window, tags, marks) for window in windows.rows)
        return Example(samples, tags, {"words": words, "line": line, "windows": windows}, windows.num_truncated)

    def _words(self, values: Values) -> tuple[list[str], Line | None]:
        return words_of(values.get("words"), self.alignment, tagged="tags" in values)

    def written(self, values: Values) -> Sequence[str]:
        return self._words(values)[0]

    def misspelt(self, values: Values, change: Callable[[str], str]) -> Values:
        """Word by word, so that each keeps its tag."""
        words, _ = self._words(values)
        marked = {"marked": marks_of(values.get("marked"), words).tolist()} if self.marked else {}
        return {**values, "words": [change(word) for word in words], **marked}

    def _sample(self, window: Window, tags: Sequence[str] | None, marks: np.ndarray | None) -> Sample:
        fields: dict[str, Any] = {"tokens": window.ids, "tagged": Places("tokens", window.places)}
        if marks is not None:
            fields["segments"] = np.where(window.words < 0, 0, marks[window.words])
        if tags is not None:
            own = tags[window.first : window.first + len(window.places)]
            if self.crf is not None and self.scheme is not None:
                # Only paths of the scheme are possible: the rest of a span that the window cuts starts a new span.
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

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """Of each word, also where a CRF decides over whole sentences."""
        assert isinstance(owned, Tagger)
        emissions = self._emissions(owned, encoder(batch).states, batch)
        if owned.crf is None:
            return [F.log_softmax(emissions.values, -1)]
        return [owned.crf.marginals(emissions).values.clamp(min=LEAST_SHARE).log()]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"tag": len(batch.tensor("tags"))}

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """[w, 2]: the number of the tag of each word of a window, and its probability."""
        assert isinstance(owned, Tagger)
        emissions = self._emissions(owned, self.last_states(encoder, batch), batch)
        if owned.crf is None:
            best, shares = emissions.values.argmax(-1), emissions.values.softmax(-1)
        else:
            best, shares = owned.crf.decode(emissions).tags.values, owned.crf.marginals(emissions).values
        chosen = shares.detach().float().gather(-1, best.unsqueeze(-1)).squeeze(-1)
        found = emissions.with_values(torch.stack([best.float(), chosen], -1))
        return [row.numpy() for row in found.with_values(found.values.cpu()).rows()]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        words = example.context["words"]
        found = example.context["windows"].join(outputs)
        tags = [self.tags[int(number)] for number, _ in found]
        if self.scheme is None:
            return {"words": words, "tags": tags}
        spans = spans_of(tags)
        shares = [share for _, share in found]
        entities = [self._entity(span, example, shares[span.start : span.end]) for span in spans]
        return {"words": words, "tags": tags_of(spans, len(words), self.scheme), "entities": entities}

    def _entity(self, span: Span, example: Example, shares: Sequence[float]) -> Answer:
        """Words by their numbers, `end_word` being the one after the last; of a text given whole also characters. The
        score is the mean probability of the words' tags."""
        found: Answer = {"type": span.label, "score": rounded(sum(shares) / len(shares)), "first_word": span.start}
        found["end_word"] = span.end
        if (line := example.context["line"]) is not None:
            start, end = line.part(span.start, span.end)
            return {**found, "start": start, "end": end, "text": line.text[start:end]}
        between = "" if self.alignment.unit == "characters" else " "
        return {**found, "text": between.join(example.context["words"][span.start : span.end])}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        """Of spans as `seqeval` counts them. Of plain labels F1 is over all words, which is their accuracy."""
        predicted = [answer["tags"] for answer in answers]
        if self.scheme is not None:
            return entity_scores(gold, predicted)
        right = token_accuracy(gold, predicted)
        return {"f1": right, "accuracy": right}

    def error_severity(self, answer: Answer, gold: Sequence[str]) -> float:
        """How many spans, or words with plain labels, are wrong or missing."""
        if self.scheme is not None:
            return float(len(set(spans_of(gold)) ^ set(spans_of(answer["tags"]))))
        return float(sum(one != other for one, other in zip(gold, answer["tags"], strict=True)))

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        """The kind of span that each word is part of, or its tag where spans have no kind."""
        pairs = zip(gold, (answer["tags"] for answer in answers), strict=True)
        labels = (zip(self.labels_of(one), self.labels_of(other), strict=True) for one, other in pairs)
        return {"word": [pair for sentence in labels for pair in sentence]}

    def scores_by_label(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, Scores]:
        if self.scheme is None:
            return super().scores_by_label(answers, gold)
        return {"entity": entity_scores_by_label(list(gold), [answer["tags"] for answer in answers])}

    def describe(self, answer: Answer, gold: Sequence[str]) -> tuple[str, str]:
        pairs = list(zip(gold, answer["tags"], strict=True))
        expected = _differing(answer["words"], pairs)
        return expected, _differing(answer["words"], [(other, one) for one, other in pairs])

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        """The accuracy of words: no spans at all would score 0."""
        tag = OUTSIDE if OUTSIDE in self.tags else most_frequent(tag for tags in trained for tag in tags)
        return Majority(tag, "accuracy", token_accuracy(measured, [[tag] * len(tags) for tags in measured]))

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        predicted = [answer["tags"] for answer in answers]
        num_words = np.array([len(tags) for tags in gold])  # [N]
        num_right = np.array(
            [sum(one == other for one, other in zip(*pair, strict=True)) for pair in zip(gold, predicted, strict=True)]
        )
        counts = None if self.scheme is None else _span_counts(gold, predicted)

        def score(numbers: np.ndarray) -> dict[str, float]:
            accuracy = float(num_right[numbers].sum() / max(1, num_words[numbers].sum()))
            if counts is None:
                return {"accuracy": accuracy, "f1": accuracy}
            sums = counts[numbers].sum(0)  # [K, 3]
            total, by_label = scores_of_counts(*sums.sum(0)), scores_of_counts(*sums.T)["f1"]
            found = by_label[sums.sum(1) > 0]
            single = {name: float(total[name]) for name in ("precision", "recall", "f1")}
            return {**single, "macro_f1": float(found.mean()) if len(found) else 0.0, "accuracy": accuracy}

        return Resampling(len(answers), score)

    def hf_head(self) -> HFHead | None:
        return HFHead(TOKENS, self.tags)

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> Task | None:
        if found.role != TOKENS:
            return None
        try:
            guess = guess_scheme([tag] for tag in found.labels)
        except InputError:  # letters of several schemes: taken for plain labels
            guess = None
        scheme = None if guess is None else guess.scheme
        return Tagging(tags=found.labels, scheme=scheme, dropout=head.dropout, transform=head.transform)

    def labels_of(self, gold: Sequence[str]) -> list[str]:
        if self.scheme is None or not any(read_tag(tag).label for tag in self.tags):
            return list(gold)
        return [read_tag(tag).label or OUTSIDE for tag in gold]


@lru_cache(4)  # what a tokenizer puts around words is found out once, not for every row
def aligner_of(alignment: Alignment, tokenizer: Tokenizer, max_length: int) -> Aligner:
    return alignment.build(tokenizer, max_length)


def every_tag(found: Collection[str], scheme: SchemeName) -> set[str]:
    """All tags that the scheme has for these labels: other rows may have them, and so may a span that a window cuts."""
    letters = SCHEMES[scheme].letters - {OUTSIDE}
    labels = {label for letter, label in map(read_tag, found) if letter != OUTSIDE}
    return {*found, *(f"{letter}-{label}" if label else letter for letter in letters for label in labels)}


def has_two_segments(encoder: EncoderSpec) -> bool:
    return any(table.field == "segments" and table.size > 1 for table in encoder.embeddings.tables)


def _differing(words: Sequence[str], pairs: Sequence[tuple[str, str]]) -> str:
    """The words whose two tags differ, each with the first."""
    differ = [f"{word}/{tag}" for word, (tag, other) in zip(words, pairs, strict=True) if tag != other]
    more = f" and {len(differ) - SHOWN_WORDS:,} more" if len(differ) > SHOWN_WORDS else ""
    return "  ".join(differ[:SHOWN_WORDS]) + more


def _span_counts(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> np.ndarray:
    """[N, K, 3] spans of each sentence and label that are right, that were predicted, that are gold."""
    pairs = [(set(spans_of(one)), set(spans_of(other))) for one, other in zip(gold, predicted, strict=True)]
    labels = sorted({span.label for pair in pairs for spans in pair for span in spans})
    place = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(pairs), len(labels), 3), np.int32)
    for row, (wanted, found) in zip(counts, pairs, strict=True):
        for column, spans in enumerate((wanted & found, found, wanted)):
            for span in spans:
                row[place[span.label], column] += 1
    return counts
