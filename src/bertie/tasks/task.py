"""The protocol of a task: an objective whose targets people wrote, and whose answers are in the user's own terms.

A row of the user's data is read into an `Example`: samples for the model, and what is needed to interpret its outputs.
The model's `outputs` for the samples become an `answer`; answers and gold become a `score`. Everything else in bertie
asks a task through the methods below, most of which have a default: a new task is one file and one line in `TASKS`.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import create_model
from torch import nn

from bertie.batch import Batch, Ragged, Sample
from bertie.data.rows.rows import Rows
from bertie.errors import InputError, SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.nn.pooling import Projection, TokenPooling
from bertie.objectives.loss_report import LossReport
from bertie.objectives.objective import Objective, positions_in
from bertie.objectives.shared_pass import SharedPass
from bertie.spec import Spec
from bertie.tasks.hf_head import HFHead
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.metrics.labels import label_scores
from bertie.tasks.metrics.majority import Majority
from bertie.text.tokenizers.tokenizer import Tokenizer

Values = Mapping[str, Any]  # of one row, by role
Answer = dict[str, Any]  # of one row, as it is written to a file
LabelPairs = dict[str, list[tuple[str, str]]]  # by what is labelled: gold label and predicted label
Scores = Mapping[str, Mapping[str, float]]  # by label: precision, recall, f1, support


@dataclass(frozen=True)
class Example:
    """One row, read. A text that is longer than a row of the model may give several samples."""

    samples: tuple[Sample, ...]
    gold: Any = None  # in the user's terms; None where the row has none
    context: Mapping[str, Any] = field(default_factory=dict)  # what an answer needs: words, passage, offsets
    num_cut: int = 0  # tokens that no sample holds
    values: Values = field(default_factory=dict)  # the row as it was read, and where it stands: for reports
    where: str = ""


class TaskOptions(Spec):
    """What users can set when they train a task. Descriptions of the fields are the help texts of the command line."""

    title: ClassVar[str] = "Task"  # heads them in the help
    task: ClassVar[Any] = None  # the class that `build` makes, where a task has no options of its own

    def build(self) -> "Task":
        task: Task = self.task()
        return task


class Task(Objective):
    """`roles` are the columns that it reads, with names that people give them; those in `optional` may be missing."""

    samples: None = None
    about: ClassVar[str] = ""  # one sentence for the list of tasks; by default the docstring's first
    roles: ClassVar[Mapping[str, Sequence[str]]]
    targets: ClassVar[Sequence[str]]  # the roles that are predicted: missing where a row only wants an answer
    optional: ClassVar[Sequence[str]] = ()
    found_together: ClassVar[Sequence[Sequence[str]]] = ()  # optional roles that content shows where names do not
    main: ClassVar[str]  # the metric that decides which of two models is better; more is better
    texts: ClassVar[Sequence[str]] = ()  # roles that can be misspelt without moving what is predicted
    max_length: ClassVar[int] = 128  # tokens of a row, unless the user says otherwise
    reads_characters: ClassVar[bool] = False  # then whole words cannot be corrected, and it makes its own tokenizer
    Options: ClassVar[type[TaskOptions]] = TaskOptions

    @classmethod
    def __pydantic_init_subclass__(cls) -> None:  # type: ignore[override]
        if "Options" not in vars(cls):
            cls.Options = create_model(f"{cls.__name__}Options", __base__=TaskOptions)
            cls.Options.task = cls

    # From files and tables to rows.

    @property
    def extra_roles(self) -> Sequence[str]:
        """Columns of labels that the user named, beside `targets`."""
        return ()

    def default_format(self, paths: Sequence[str | Path]) -> str | None:
        """The format of such files, where this task reads them in another way than their content suggests."""
        return None

    def roles_in(self, rows: Rows) -> Mapping[str, Sequence[str]]:
        """`roles`, where the content of rows decides which names a role may have."""
        return self.roles

    def prepare_rows(self, rows: Rows, columns: Mapping[str, str]) -> tuple[Rows, Mapping[str, str]]:
        """Rows in the form that `read` expects; `columns` are those that the user named, by role."""
        return rows, columns

    def reads_role(self, role: str) -> bool:
        """Whether a trained task reads a role that is optional."""
        return True

    def needs_role(self, role: str) -> bool:
        """Whether every row of a trained task must have a role that is optional, such as the second text of a pair."""
        return False

    def rows_from_texts(self, texts: Sequence[str]) -> list[Values]:
        """Rows from bare texts: one from each where a row has a single text, else one row of all, in the order of the
        roles. SpecError where the texts do not make a row."""
        inputs = [role for role in self.roles if role not in self.targets]
        roles = [role for role in inputs if role not in self.optional or self.needs_role(role)]
        if len(roles) == 1:
            return [{roles[0]: text} for text in texts]
        if len(texts) != len(roles):
            what = f"a row of this task is {', '.join(roles)}: {len(roles)} texts, not {len(texts)}"
            raise SpecError(what, hint=self.how_to_give_rows(roles))
        return [dict(zip(roles, texts, strict=True))]

    def how_to_give_rows(self, roles: Sequence[str]) -> str:
        """What to do where bare texts are not enough, or are ambiguous."""
        given = ", ".join(f'"{role}": "..."' for role in roles)
        return f"give several rows as `input`: a table with the columns {', '.join(roles)}, or JSON lines {{{given}}}"

    def make_tokenizer(self, rows: Iterable[Values]) -> Tokenizer | None:
        """A tokenizer made from the training rows, for tasks that need no other."""
        return None

    # What the data decide.

    def fitted(self, rows: Iterable[Values]) -> Self:
        """With what only the training data show, such as the labels. Rows that `read` would refuse are ignored;
        InputError where the rest is not enough to learn from."""
        return self

    def has_labels_of(self, earlier: Objective) -> bool:
        """Whether outputs mean the same as those of an earlier task."""
        return type(earlier) is type(self) and _labels(earlier) == _labels(self)

    def numbered_as(self, earlier: Objective) -> Self:
        """With the labels in the order of an earlier task, where both have the same ones: its head can then be kept."""
        if type(earlier) is not type(self):
            return self
        old, own = _labels(earlier), _labels(self)
        are_same = all(_sorted(old[name]) == _sorted(own[name]) for name in own)
        return self.replace(**old) if own and are_same else self

    def measured_on(self, roles: Collection[str], rows: Iterable[Values] = ()) -> Self:
        """With what held-out rows and their columns show, such as which metric decides. InputError where they would
        be measured wrongly."""
        return self

    def check(self, encoder: EncoderSpec) -> None:
        """Raises SpecError where the task needs something that such an encoder does not have."""

    def summary(self) -> str:
        """What was learned from the training rows, in one line; "" for nothing."""
        return ""

    def tuned(self, examples: Sequence[Example], outputs: Sequence[Sequence[np.ndarray]]) -> Self:
        """With what is chosen on held-out rows, such as thresholds."""
        return self

    # From rows to samples.

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        """Raises InputError where the row cannot be used."""
        raise NotImplementedError

    def missing(self, values: Values) -> str:
        """Why nothing can be learned from a row without gold."""
        return f"the {', '.join(self.targets) or 'label'} is missing"

    def unread(self, roles: Collection[str]) -> list[str]:
        """Roles of the training rows that the fitted task does not learn from."""
        return []

    def unmeasured(self, roles: Collection[str]) -> Mapping[str, str]:
        """Roles of the held-out rows that are ignored, and why, once it is known what they measure."""
        return {}

    def written(self, values: Values) -> Sequence[Any]:
        """A row's texts, as the tokenizer gets them."""
        return [value for role, value in values.items() if role not in self.targets]

    def misspelt(self, values: Values, change: Callable[[str], str]) -> Values:
        """The row with misspelt texts; `change` misspells one text."""
        return {
            role: change(value) if role in self.texts and isinstance(value, str) else value
            for role, value in values.items()
        }

    # From samples to answers.

    def outputs(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """The model's output for each sample."""
        raise NotImplementedError

    def evaluate_batch(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> tuple[LossReport, list[np.ndarray]]:
        """Loss and outputs from one pass of the encoder."""
        positions = positions_in(self.read_positions, batch) if self.read_positions else None
        once: Any = SharedPass(encoder, batch, positions)
        return self.loss(owned, once, batch), self.outputs(owned, once, batch)

    def last_states(self, encoder: Encoder, batch: Batch) -> Ragged:
        """Those that the task reads; others may be 0."""
        positions = None if self.read_positions is None else positions_in(self.read_positions, batch)
        return encoder(batch, positions=positions).states

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        """One for a row, in the user's terms: labels, tags of words, spans of characters."""
        raise NotImplementedError

    def arrange(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[Answer]:
        """Answers to the rows of `rows_from_texts(texts)`, in the order in which a user wants to read them."""
        return list(answers)

    # From answers to figures and reports.

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        """The metrics that papers report, by name."""
        raise NotImplementedError

    @property
    def positive(self) -> str | None:
        """The label that `f1` is about, where it is that of one label alone."""
        return None

    def resample(self, answers: Sequence[Answer], gold: Sequence[Any]) -> Resampling:
        """Computes the score of rows drawn with replacement. Tasks that can count row by row do so once, which makes
        a draw cheap."""

        def score(numbers: np.ndarray) -> dict[str, float]:
            drawn = numbers.tolist()
            return self.score([answers[number] for number in drawn], [gold[number] for number in drawn])

        return Resampling(len(answers), score)

    def majority(self, trained: Sequence[Any], measured: Sequence[Any]) -> Majority | None:
        """The score of giving every row the most frequent answer. `trained` is the gold that decides the answer,
        `measured` the gold that it is scored on; neither is empty. None where an answer depends on its row."""
        return None

    def constant_score(self, name: str, answer: Answer, measured: Sequence[Any]) -> Majority:
        """The score of one answer for all rows."""
        return Majority(name, self.main, self.score([answer] * len(measured), measured)[self.main])

    def error_severity(self, answer: Answer, gold: Any) -> float:
        """0 for a right answer; the worse the mistake, the larger."""
        score = self.score([answer], [gold])[self.main]
        return 0.0 if math.isnan(score) else max(0.0, 1 - score)

    def describe(self, answer: Answer, gold: Any) -> tuple[str, str]:
        """Gold and the answer in words. Of many labels in one row only those that differ."""
        return str(gold), json.dumps(answer, ensure_ascii=False, default=str)

    def excerpt_start(self, role: str, example: Example, answer: Answer) -> int:
        """The character of a long text that an excerpt of it must show."""
        return 0

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        """Gold and predicted label of everything that gets one label of several, by what is labelled ("label", an
        aspect, "word"): confusion tables are made from it. Empty where there are no such labels."""
        return {}

    def scores_by_label(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, Scores]:
        """By what is labelled; of spans their types, else the labels."""
        return {
            what: label_scores(*map(list, zip(*pairs, strict=True)))
            for what, pairs in self.label_pairs(answers, gold).items()
            if pairs
        }

    def labels_of(self, gold: Any) -> list[str]:
        """The labels of one row, to count how often each occurs; none where gold is no label."""
        return []

    # Heads of other libraries, and vectors of `sentence-transformers`.

    def hf_head(self) -> HFHead | None:
        """The head that `transformers` has for such a task, if any."""
        return None

    @classmethod
    def from_hf(cls, found: HFHead, head: SequenceHeadSpec) -> "Task | None":
        """The task that a head of `transformers` was trained for; None where it is none of this class."""
        return None

    @property
    def vector_pooling(self) -> TokenPooling | None:
        """How a text becomes a vector, for tasks that learn vectors."""
        return None

    @property
    def has_dense(self) -> bool:
        """Whether vectors pass a dense layer behind their pooling."""
        return False

    def with_pooling(self, pooling: TokenPooling, projection: Projection | None, width: int) -> Self:
        """For tasks that learn vectors: with the pooling, and the dense layer if it fits `width`, of the base model,
        unless they were chosen."""
        return self

    def load_projection(self, owned: nn.Module, projection: Projection) -> None:
        """Copies a dense layer's weights into the head, where it has such a layer."""

    def projection(self, owned: nn.Module) -> Projection | None:
        """The head's dense layer behind the pooling."""
        return None


def _labels(task: Objective) -> dict[str, Any]:
    """What numbers the outputs of a task: its labels, tags or aspects."""
    return {name: getattr(task, name) for name in ("labels", "tags", "aspects") if hasattr(task, name)}


def _sorted(labels: Any) -> Any:
    if isinstance(labels, Mapping):
        return {name: sorted(found) for name, found in sorted(labels.items())}
    return sorted(labels)


def text_of(values: Values, role: str, name: str | None = None) -> str:
    """`name` is what the user calls it, where that is not the role."""
    value = values.get(role)
    if is_empty(value):
        raise InputError(f"the {name or role} is empty")
    if not isinstance(value, str):
        raise InputError(f"the {name or role} is {type(value).__name__}, not a text")
    return value


def is_empty(cell: Any) -> bool:
    """Nothing, white space, or NaN."""
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def encoded(
    tokenizer: Tokenizer, max_length: int, text: str, other: str | None = None
) -> tuple[dict[str, np.ndarray], int]:
    """The fields of a sample, and how many tokens were cut."""
    tokens = tokenizer.encode(text, other, max_length=max_length)
    return {"tokens": tokens.ids, "segments": tokens.segments}, tokens.num_truncated
