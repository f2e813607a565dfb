"""The protocol of a task: an objective whose targets people wrote, and which answers them in their own terms.

A row of the user's data is read into an `Example`: samples for the model, and what is needed to speak of them in the
user's words. The model's `outputs` for the samples become an `answer`; answers and gold become a `score`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from bertie.batch import Batch, Ragged, Sample
from bertie.errors import InputError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.objectives.objective import FIRST, Objective, places_in
from bertie.text.tokenizer import Tokenizer

Values = Mapping[str, Any]  # of one row, by role
Answer = dict[str, Any]  # of one row, as it is written to a file


@dataclass(frozen=True)
class Example:
    """One row, read. A text that is longer than a row of the model may give several samples."""

    samples: tuple[Sample, ...]
    gold: Any = None  # in the user's terms; None where the row has none
    told: Mapping[str, Any] = field(default_factory=dict)  # what an answer needs: words, passage, offsets
    num_cut: int = 0  # tokens that no sample holds
    values: Values = field(default_factory=dict)  # the row as it was read, and where it stands: for reports
    where: str = ""


class Task(Objective):
    """`roles` are the columns that it reads, with names that people give them; those in `optional` may be missing."""

    samples: None = None
    roles: ClassVar[Mapping[str, Sequence[str]]]
    targets: ClassVar[Sequence[str]]  # the roles that are asked for, absent where a row is only to be answered
    optional: ClassVar[Sequence[str]] = ()
    main: ClassVar[str]  # the metric that says which of two models is better; more is better
    texts: ClassVar[Sequence[str]] = ()  # roles that may be misspelt without moving what is asked for

    def fitted(self, rows: Iterable[Values]) -> Self:
        """With what only the training data can tell, such as the labels. Rows that `read` would refuse tell nothing
        here; InputError where the rest is not enough to learn from."""
        return self

    def measured_on(self, roles: Collection[str], rows: Iterable[Values] = ()) -> Self:
        """With what held-out rows and their columns can tell, such as which metric decides. InputError where they would
        be measured wrongly."""
        return self

    def check(self, encoder: EncoderSpec) -> None:
        """Raises SpecError where the task asks for what such an encoder has not."""

    def summary(self) -> str:
        """What the training data told, in one line; "" where that is nothing."""
        return ""

    def read(self, values: Values, tokenizer: Tokenizer, length: int) -> Example:
        """Raises InputError where the row cannot be used."""
        raise NotImplementedError

    def missing(self, values: Values) -> str:
        """Why nothing can be learned from a row without gold."""
        return f"the {', '.join(self.targets) or 'label'} is missing"

    def unread(self, roles: Collection[str]) -> list[str]:
        """Those of the training rows that teach nothing, once the task is fitted."""
        return []

    def unmeasured(self, roles: Collection[str]) -> Mapping[str, str]:
        """Those of the held-out rows that are not looked at, and why, once it is known what they measure."""
        return {}

    def written(self, values: Values) -> Sequence[Any]:
        """A row's texts, as the tokenizer gets them."""
        return [value for role, value in values.items() if role not in self.targets]

    def misspelt(self, values: Values, change: Callable[[str], str]) -> Values:
        """The row as it might have been typed; `change` makes of a text what a hasty hand would."""
        return {
            role: change(value) if role in self.texts and isinstance(value, str) else value
            for role, value in values.items()
        }

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """What the model says of each sample."""
        raise NotImplementedError

    def last_states(self, encoder: Encoder, batch: Batch) -> Ragged:
        """Those that the task looks at; others may be 0."""
        wanted = None if self.looks_at is None else places_in(self.looks_at, batch)
        return encoder(batch, wanted=wanted).states

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        """One a row, in the user's terms: labels, tags of words, spans of characters."""
        raise NotImplementedError

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        """The metrics that papers report, by name."""
        raise NotImplementedError

    def wrongness(self, answer: Answer, gold: Any) -> float:
        """0 for what is right; the more, the worse the mistake."""
        raise NotImplementedError

    def labels_told(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
        """Gold and told label of everything that gets one label of several, by what is labelled ("label", an aspect,
        "word"): what tables of confusion are made of. Nothing where there are no such labels."""
        return {}

    def labels_of(self, gold: Any) -> list[str]:
        """The labels of one row, for their balance; none where gold is no label."""
        return []

    def tuned(self, examples: Sequence[Example], outputs: Sequence[Sequence[np.ndarray]]) -> Self:
        """With what is chosen on held-out rows, such as thresholds."""
        return self


def text_of(values: Values, role: str, name: str | None = None) -> str:
    """`name` is what the user calls it, where that is not the role."""
    value = values.get(role)
    if is_empty(value):
        raise InputError(f"the {name or role} is empty")
    if not isinstance(value, str):
        raise InputError(f"the {name or role} is {type(value).__name__}, not a text")
    return value


def is_empty(cell: Any) -> bool:
    """Nothing, white space, or the number that tables have for nothing."""
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def encoded(
    tokenizer: Tokenizer, length: int, text: str, other: str | None = None
) -> tuple[dict[str, np.ndarray], int]:
    """The fields of a sample, and how many tokens were cut."""
    tokens = tokenizer.encode(text, other, max_length=length)
    return {"tokens": tokens.ids, "segments": tokens.segments}, tokens.num_truncated


def looked_at_by(head: SequenceHeadSpec) -> tuple[str, ...] | None:
    """As an objective says it."""
    return (FIRST,) if head.tokens == "first" else None
