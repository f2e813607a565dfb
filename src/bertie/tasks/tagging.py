"""Tags of words: words enter, one tag for each leaves. Entities, parts of speech, segmentation, roles.

BERT, section 5.3: the first token of a word speaks for it. Tags come from a softmax over each word, or from a CRF over
the sentence.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Places, Pointers, Ragged, Sample
from bertie.errors import InputError
from bertie.nn.crf import CRF, CRFSpec, Moves
from bertie.nn.dropout import Dropout
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.initial import initialised
from bertie.objectives.objective import Vocabulary
from bertie.objectives.report import Figure, LossReport
from bertie.tasks.metrics.entities import entity_scores, token_accuracy
from bertie.tasks.task import Answer, Example, Task, Values
from bertie.text.alignment import Alignment, Window, read_line
from bertie.text.tag_schemes import SchemeName, guess_scheme, spans_of, transitions
from bertie.text.tokenizer import Tokenizer

MARKED, PLAIN = 1, 0  # the segment of a marked word, and of all others
LEAST_SHARE = 1e-30  # of a tag that cannot be, so that its logarithm is a number


class Tagger(nn.Module):
    def __init__(self, output: nn.Linear, dropout: float, crf: CRF | None):
        super().__init__()
        self.dropout, self.output, self.crf = Dropout(dropout), output, crf

    def forward(self, states: Tensor) -> Tensor:
        """[W, H] -> [W, tags]"""
        return self.output(self.dropout(states))


class Tagging(Task):
    """With `marked` a row also says which word is asked about, such as the predicate of roles: it is the second segment."""

    kind: Literal["tag"] = "tag"
    roles: ClassVar[Mapping[str, Sequence[str]]] = {
        "words": ("words", "tokens", "text", "sentence"),
        "tags": ("tags", "ner_tags", "labels", "ner", "pos", "tag"),
        "marked": ("marked", "predicate", "predicate_index"),
    }
    targets: ClassVar[Sequence[str]] = ("tags",)
    optional: ClassVar[Sequence[str]] = ("marked",)
    main: ClassVar[str] = "f1"
    tags: tuple[str, ...] = ()
    scheme: SchemeName | None = None  # None: plain labels of words
    crf: CRFSpec | None = None
    alignment: Alignment = Alignment()
    dropout: float = Field(default=0.1, ge=0, lt=1)

    def fitted(self, rows: Iterable[Values]) -> Self:
        sentences = [list(map(str, values["tags"])) for values in rows]
        found = guess_scheme(sentences)
        tags = sorted({tag for sentence in sentences for tag in sentence}, key=lambda tag: (tag != "O", tag))
        return self.replace(tags=tuple(tags), scheme=None if found is None else found.scheme)

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Tagger:
        output = nn.Linear(encoder.width, len(self.tags))
        tagger = Tagger(output, self.dropout, None if self.crf is None else self.crf.build(len(self.tags), self._moves()))
        return initialised(tagger, encoder.initial_std)

    def _moves(self) -> Moves | None:
        if self.scheme is None:
            return None
        return Moves(*map(torch.from_numpy, transitions(self.tags, self.scheme)))

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        words, told = self._words(values)
        tags = None
        if "tags" in values:
            tags = list(map(str, values["tags"]))
            if len(tags) != len(words):
                raise InputError(f"there are {len(words)} words and {len(tags)} tags")
            if strange := next((tag for tag in tags if tag not in self.tags), None):
                raise InputError(f"the tag {strange!r} is not among those of the training data")
        windows = self.alignment.build(tokenizer, length)(words)
        marked = int(values["marked"]) if "marked" in values else None
        samples = tuple(self._sample(window, tags, marked) for window in windows.rows)
        return Example(samples, tags, {**told, "words": words, "windows": windows}, windows.num_truncated)

    def _words(self, values: Values) -> tuple[list[str], Mapping[str, Any]]:
        given = values.get("words")
        if isinstance(given, str):
            line = read_line(given, self.alignment.unit)
            given, told = line.words, {"line": line}
        else:
            given, told = [str(word) for word in given or ()], {}
        if not given:
            raise InputError("there are no words")
        return list(given), told

    def _sample(self, window: Window, tags: Sequence[str] | None, marked: int | None) -> Sample:
        fields: dict[str, Any] = {"tokens": window.ids, "tagged": Places("tokens", window.places)}
        if marked is not None:
            fields["segments"] = np.where(window.words == marked, MARKED, PLAIN)
        if tags is not None:
            own = tags[window.first : window.first + len(window.places)]
            fields["tags"] = np.array([self.tags.index(tag) for tag in own])
        return fields

    def _emissions(self, owned: Tagger, encoder: Encoder, batch: Batch) -> Ragged:
        """[W, tags], rows of words."""
        tagged = batch["tagged"]
        assert isinstance(tagged, Pointers)
        return Ragged(owned(encoder(batch).states.values[tagged.values]), tagged.lengths)

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, Tagger)
        emissions, targets = self._emissions(owned, encoder, batch), batch.tensor("tags")
        correct = (emissions.values.detach().argmax(-1) == targets).float()
        if owned.crf is None:
            losses = Figure.over(F.cross_entropy(emissions.values, targets, reduction="none"))
        else:
            losses = Figure(-owned.crf.log_likelihood(emissions, targets).sum(), torch.tensor(len(targets)))
        return LossReport({"tag": losses}, {"word_accuracy": Figure.over(correct)})

    def log_shares(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """Of each word, also where a CRF decides over whole sentences."""
        assert isinstance(owned, Tagger)
        emissions = self._emissions(owned, encoder, batch)
        if owned.crf is None:
            return [F.log_softmax(emissions.values, -1)]
        return [owned.crf.marginals(emissions).values.clamp(min=LEAST_SHARE).log()]

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"tag": len(batch.tensor("tags"))}

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """The tag of each word of a window."""
        assert isinstance(owned, Tagger)
        emissions = self._emissions(owned, encoder, batch)
        best = emissions.with_values(emissions.values.argmax(-1)) if owned.crf is None else owned.crf.decode(emissions).tags
        return [row.numpy() for row in best.rows()]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        tags = example.told["windows"].join([[self.tags[tag] for tag in output] for output in outputs])
        words = example.told["words"]
        answer: Answer = {"words": words, "tags": tags}
        if self.scheme is not None:
            answer["entities"] = [self._entity(span, example) for span in spans_of(tags)]
        return answer

    def _entity(self, span: Any, example: Example) -> Answer:
        told: Answer = {"type": span.label, "first": span.start, "end": span.end}
        if (line := example.told.get("line")) is not None:
            start, end = line.part(span.start, span.end)
            return {**told, "start": start, "stop": end, "text": line.text[start:end]}
        return {**told, "text": " ".join(example.told["words"][span.start : span.end])}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        predicted = [answer["tags"] for answer in answers]
        accuracy = {"accuracy": token_accuracy(list(gold), predicted)}
        if self.scheme is None:
            return {**accuracy, "f1": accuracy["accuracy"]}
        return {**entity_scores(list(gold), predicted), **accuracy}
