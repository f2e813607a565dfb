"""Restores the spaces of a text that has lost them. No other character is ever changed.

It learns from any running text: white space is removed, and for each remaining character a tagger predicts whether a
space follows. Lines longer than a row are read in windows that overlap.

Axes: C characters without white space.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import TransformSpec
from bertie.objectives.loss_report import LossReport
from bertie.objectives.objective import Vocabulary
from bertie.tasks.hf_head import TOKENS, HFHead
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.labels import scores_of_counts
from bertie.tasks.tagging import Tagger, Tagging
from bertie.tasks.task import Answer, Example, Task, Values, text_of
from bertie.text.tokenizers.alignment import Alignment, read_line
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.vocab.building import characters_of

TAGS = ("joined", "space")  # what follows a character
FIGURES = ("precision", "recall", "f1")


class Spacing(Task):
    """Spaces that a text still has are removed, too. The last character is followed by nothing."""

    kind: Literal["spaces"] = "spaces"
    about: ClassVar[str] = "Restore missing spaces."
    roles: ClassVar[Mapping[str, Sequence[str]]] = {"text": ("text", "sentence", "line", "content", "paragraph")}
    targets: ClassVar[Sequence[str]] = ()  # the text has its own spaces
    texts: ClassVar[Sequence[str]] = ("text",)
    main: ClassVar[str] = "f1"
    reads_characters: ClassVar[bool] = True
    read_positions: ClassVar[tuple[str, ...] | None] = ("tagged",)
    alignment: Alignment = Alignment(unit="characters", overlap=16)  # a word or two
    dropout: float = Field(default=0.1, ge=0, lt=1)
    transform: TransformSpec | None = None  # before the output

    @property
    def tagger(self) -> Tagging:
        return Tagging(tags=TAGS, alignment=self.alignment, dropout=self.dropout, transform=self.transform)

    def default_format(self, paths: Sequence[str | Path]) -> str | None:
        """Files of running text are read line by line, whatever their content looks like."""
        names = (Path(path).name.lower().removesuffix(".gz").removesuffix(".zst") for path in paths)
        return "lines" if all(name.endswith(".txt") for name in names) else None

    def make_tokenizer(self, rows: Iterable[Values]) -> Tokenizer | None:
        return characters_of(text for row in rows if isinstance(text := row.get("text"), str))

    def summary(self) -> str:
        return "after which characters a space follows"

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Tagger:
        return self.tagger.build(encoder, vocabulary)

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        text = text_of(values, "text")
        characters, spaced = without_spaces(text)
        tags = [TAGS[follows] for follows in spaced]
        read = self.tagger.read({"words": characters, "tags": tags}, tokenizer, max_length)
        return Example(read.samples, " ".join(text.split()), read.context, read.num_cut)

    def written(self, values: Values) -> Sequence[str]:
        return without_spaces(text_of(values, "text"))[0]

    def misspelt(self, values: Values, change: Callable[[str], str]) -> Values:
        """Word by word, since lost spaces are what is predicted."""
        return {**values, "text": " ".join(map(change, text_of(values, "text").split()))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        return self.tagger.loss(owned, encoder, batch)

    def log_probs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[Tensor]:
        return self.tagger.log_probs(owned, encoder, batch)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return self.tagger.counts(batch)

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """[c, 2]: 1 where a space follows a character of a window, and how probable that is."""
        return self.tagger.outputs(owned, encoder, batch)

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        follows = [space for space, _ in example.context["windows"].join(outputs)]
        spaces = [" " if space else "" for space in follows[:-1]]
        parts = zip(example.context["words"], [*spaces, ""], strict=True)
        return {"text": "".join(character + space for character, space in parts)}

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        sums = sum(space_counts(answer["text"], one) for answer, one in zip(answers, gold, strict=True))
        scores = scores_of_counts(*np.asarray(sums))
        return {name: float(scores[name]) for name in FIGURES}

    def error_severity(self, answer: Answer, gold: str) -> float:
        """How many spaces are wrong or missing."""
        right, found, wanted = space_counts(answer["text"], gold)
        return float(found + wanted - 2 * right)

    def describe(self, answer: Answer, gold: str) -> tuple[str, str]:
        return gold, answer["text"]

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        pairs = zip(answers, gold, strict=True)
        counts = np.array([space_counts(answer["text"], wanted) for answer, wanted in pairs])  # [N, 3]

        def score(numbers: np.ndarray) -> dict[str, float]:
            scores = scores_of_counts(*counts[numbers].sum(0))
            return {name: float(scores[name]) for name in FIGURES}

        return Resampling(len(answers), score)

    def hf_head(self) -> HFHead | None:
        return HFHead(TOKENS, TAGS)


def without_spaces(text: str) -> tuple[list[str], np.ndarray]:
    """The characters of a text, and [C] 1 where white space follows one before the next."""
    line = read_line(text, "characters")
    gaps = line.offsets[1:, 0] > line.offsets[:-1, 1]
    return line.words, np.append(gaps, False).astype(np.int64)


def space_counts(predicted: str, gold: str) -> np.ndarray:
    """[3] spaces that are right, that were predicted, that are gold; the other characters are the same."""
    (characters, found), (same, wanted) = without_spaces(predicted), without_spaces(gold)
    assert characters == same
    return np.array([(found & wanted).sum(), found.sum(), wanted.sum()])
