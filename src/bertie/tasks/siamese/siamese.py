"""Siamese encoders: turn each text of a row into a vector; texts of the same meaning get vectors near to each other.

Reimers and Gurevych, Sentence-BERT, 2019. All texts of all rows are one batch for the encoder. Vectors of several sizes
at once: Kusupati et al., Matryoshka Representation Learning, 2022. The base model may have a dense layer behind its
pooling, as after whitening: it is trained together with the encoder.

Axes: N rows, V texts of all rows, W numbers of a vector.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.data.rows.rows import Rows
from bertie.devices import copied
from bertie.errors import InputError, SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.initial import initialized
from bertie.nn.pooling import TOKEN_POOLING, Projection, TokenPooling
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import FIRST, Vocabulary
from bertie.tasks.label_sets import (
    at_least_two,
    known,
    label_error,
    label_of,
    listed,
    one_label_scores,
    one_of,
    positive_of,
    sorted_labels,
)
from bertie.tasks.metrics.intervals import Resampling
from bertie.tasks.siamese.siamese_head import DenseSpec, SiameseHead
from bertie.tasks.siamese.siamese_rows import (
    CRITERIA,
    KINDS,
    MAIN,
    ROLES,
    TEXTS,
    Criterion,
    Gold,
    RowKind,
    chosen,
    fraction_of,
    held_out_kind,
    kind_of,
    roles_in,
    token_digest,
)
from bertie.tasks.siamese.vector_figures import VectorAnswer, row_figures, shortened, vector_figures
from bertie.tasks.siamese.vector_losses import cosent_loss, cosine_loss, ranking_loss, triplet_loss
from bertie.tasks.similarity import number_of
from bertie.tasks.task import Answer, Example, LabelPairs, Task, Values, encoded, is_empty, text_of
from bertie.text.tokenizers.tokenizer import Tokenizer

NAMES = {"text": "text", "other": "second text", "negative": "third text"}
NONE = -1  # the label of a row that has none


class Siamese(Task):
    """A row has one, two or three texts, and perhaps a score or a label, which decide the `criterion` unless the user
    names one. Held-out rows may be of another kind than training rows: their columns decide what is `measured`."""

    kind: Literal["siamese"] = "siamese"
    roles: ClassVar[Mapping[str, Sequence[str]]] = ROLES
    targets: ClassVar[Sequence[str]] = ("score", "label")
    optional: ClassVar[Sequence[str]] = ("other", "negative", "score", "label")
    found_together: ClassVar[Sequence[Sequence[str]]] = (("other", "score"), ("other",))
    texts: ClassVar[Sequence[str]] = TEXTS
    criterion: Criterion | None = None  # None before training
    pooling: TokenPooling | None = None  # None: that of the base model, else the mean
    dense: DenseSpec | None = None  # behind the pooling; comes from the base model
    sizes: tuple[int, ...] = ()  # of shorter vectors: the first numbers of the whole ones
    scale: float = Field(default=20.0, gt=0)  # of cosines under a softmax: 1 / temperature
    margin: float = Field(default=0.5, gt=0)  # of cosines, in the criterion triplet
    labels: tuple[str, ...] = ()
    least: float | None = None  # the scale of the scores that were learned
    most: float | None = None
    measured: RowKind | None = None  # the kind of the held-out rows; None: rows are read for training

    @field_validator("sizes")
    @classmethod
    def _sizes_fall(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if any(size < 1 for size in sizes):
            raise ValueError("a vector has at least one number")
        return tuple(sorted(set(sizes), reverse=True))

    @property
    def tokens(self) -> TokenPooling:
        return self.pooling or "mean"

    @property
    def vector_pooling(self) -> TokenPooling | None:
        return self.tokens

    @property
    def has_dense(self) -> bool:
        return self.dense is not None

    @property
    def read_positions(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return (FIRST,) if self.tokens == "first" else None

    @property
    def contrastive(self) -> bool:  # type: ignore[override]
        return self.criterion is not None and CRITERIA[self.criterion].contrastive

    @property
    def positive(self) -> str | None:
        return positive_of(self.labels)

    @property
    def main(self) -> str:  # type: ignore[override]
        return MAIN[self.measured or "scored"]

    def roles_in(self, rows: Rows) -> Mapping[str, Sequence[str]]:
        return ROLES if self.criterion == "softmax" else roles_in(rows)

    def rows_from_texts(self, texts: Sequence[str]) -> list[Values]:
        """The texts of one row, which are compared with the first."""
        if not 1 <= len(texts) <= len(TEXTS):
            what = f"a row of this task is one to three texts, which are compared, not {len(texts)}"
            raise SpecError(what, hint=self.how_to_give_rows(("text", "other")))
        return [dict(zip(TEXTS, texts, strict=False))]

    def check(self, encoder: EncoderSpec) -> None:
        width = encoder.output_width if self.dense is None else self.dense.size
        if self.sizes and self.sizes[0] > width:
            what = f"vectors have {width:,} numbers, not {self.sizes[0]:,}"
            raise SpecError(what, hint=f"{width} is the largest that `sizes` may contain")

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> SiameseHead:
        self.check(encoder)
        num_labels = len(self.labels) if self.criterion == "softmax" else 0
        return initialized(SiameseHead(encoder.output_width, self.dense, num_labels), encoder.initial_std)

    def fitted(self, rows: Iterable[Values]) -> Self:
        roles, scores, labels, num_rows = set[str](), list[float](), set[str](), 0
        for values in rows:
            roles |= values.keys()
            num_rows += 1
            with suppress(InputError):
                if "score" in values:
                    scores.append(number_of(values["score"]))
                if "label" in values:
                    labels.add(label_of(values["label"]))
        task = self.replace(criterion=chosen(self.criterion, roles))
        if task.criterion == "softmax" and self.criterion is None and (score := fraction_of(labels)) is not None:
            raise InputError(
                f"the labels are numbers like {score}, which look like scores",
                hint="name their column with `column` score=NAME, or learn them as labels with `loss=softmax`",
            )
        if task.criterion == "softmax":
            if self.sizes:
                raise SpecError(
                    "softmax learns from whole vectors only", hint="leave out `sizes` or choose another `loss`"
                )
            return task.replace(labels=at_least_two(sorted_labels(labels), "label"))
        if task.criterion in ("cosine", "cosent"):
            least, most = min(scores, default=0.0), max(scores, default=0.0)
            if least == most:
                few = "" if len(scores) == num_rows else f", {len(scores):,} of {num_rows:,} of which are numbers,"
                raise InputError(f"the scores{few} do not differ", hint="at least two are needed")
            return task.replace(least=least, most=most)
        return task

    def measured_on(self, roles: Collection[str], rows: Iterable[Values] = ()) -> Self:
        return self.replace(measured=held_out_kind(roles if self.labels else set(roles) - {"label"}, rows))

    def summary(self) -> str:
        assert self.criterion is not None
        facts = [f"{self.criterion}: {CRITERIA[self.criterion].goal}"]
        if self.least is not None:
            facts.append(f"scores from {self.least:g} to {self.most:g}")
        if self.labels:
            facts.append(f"{len(self.labels):,} labels: {listed(self.labels)}")
        return "; ".join(facts)

    def read(self, values: Values, tokenizer: Tokenizer, max_length: int) -> Example:
        values = self._without_empty(values)
        last = max((number for number, role in enumerate(TEXTS) if role in values), default=0)
        read = [encoded(tokenizer, max_length, text_of(values, role, NAMES[role])) for role in TEXTS[: last + 1]]
        texts, gold = [fields for fields, _ in read], self._gold(values)
        fields = {name: np.concatenate([one[name] for one in texts]) for name in ("tokens", "segments")}
        fields["texts"] = np.array([len(one["tokens"]) for one in texts])
        fields["digests"] = np.array([token_digest(one["tokens"]) for one in texts])
        score, label = np.nan, NONE
        if gold is not None and gold.kind == "scored":
            score = self._share(float(gold.value))
        if gold is not None and gold.kind == "labelled":
            label = self.labels.index(str(gold.value))
        fields["score"], fields["label"] = np.asarray(score, np.float32), np.asarray(label)
        return Example((fields,), gold, num_cut=sum(num_cut for _, num_cut in read))

    def missing(self, values: Values) -> str:
        kind, values = self._wanted, self._without_empty(values)
        assert kind is not None
        role = next(role for role in KINDS[kind] if role not in values)
        return f"the {NAMES.get(role, role)} is missing"

    def unread(self, roles: Collection[str]) -> list[str]:
        assert self.criterion is not None
        way = CRITERIA[self.criterion]
        return [role for role in roles if role not in (*way.roles, *way.optional)]

    def unmeasured(self, roles: Collection[str]) -> Mapping[str, str]:
        why = {} if self.labels else {"label": "it was not learned"}
        if self.measured == "pairs":
            why["negative"] = "some rows have no third text"
        return {role: reason for role, reason in why.items() if role in roles}

    @property
    def _wanted(self) -> RowKind | None:
        """The kind of rows that are read: what is measured, else what the criterion learns from."""
        return self.measured or (None if self.criterion is None else kind_of(CRITERIA[self.criterion].roles))

    def _without_empty(self, values: Values) -> Values:
        """Leaves out empty texts that neither the criterion nor the measurement needs."""
        kind, way = self._wanted, None if self.criterion is None else CRITERIA[self.criterion]
        needed = TEXTS if kind is None or way is None else set(KINDS[kind]) & set(way.roles)
        unused = [role for role in TEXTS if role not in needed and is_empty(values.get(role))]
        return {role: value for role, value in values.items() if role not in unused}

    def _gold(self, values: Values) -> Gold | None:
        kind = self._wanted
        if kind is None or not set(KINDS[kind]) <= values.keys():
            return None
        if kind == "scored":
            return Gold(kind, number_of(values["score"]))
        if kind == "labelled":
            return Gold(kind, known(label_of(values["label"]), self.labels))
        return Gold(kind, text_of(values, "text" if kind == "texts" else "other"))

    def _share(self, score: float) -> float:
        """Mapped to 0 to 1, where the scale is known."""
        if self.least is None or self.most is None:
            return score
        return (score - self.least) / (self.most - self.least)

    def embed_rows(self, owned: Any, encoder: Encoder, batch: Batch) -> Batch:
        """The vectors that the loss reads. SimCSE encodes each text twice."""
        lengths, digests = batch.ragged("texts"), batch.ragged("digests")
        apart = {name: Ragged(batch.tensor(name), lengths.values) for name in ("tokens", "segments")}
        if self.criterion == "simcse":
            twice = lengths.starts.repeat_interleave(2)
            apart = {name: _rows_at(rows, twice) for name, rows in apart.items()}
            pairs = torch.full_like(lengths.lengths, 2)
            digests = Ragged(digests.values[copied(twice, digests.device)], pairs)
            lengths = Ragged(apart["tokens"].lengths, pairs)
        vectors = self._vectors(owned, encoder, Batch(apart)).float()
        return Batch(
            {
                "vectors": lengths.with_values(vectors),
                "digests": digests,
                "score": batch.host.tensor("score"),  # what they are decides which loss it is
                "label": batch.host.tensor("label"),
            }
        )

    def _vectors(self, owned: SiameseHead, encoder: Encoder, texts: Batch) -> Tensor:
        """[V, W] not normalised"""
        return owned.vectors(TOKEN_POOLING[self.tokens](self.last_states(encoder, texts)))

    def loss(self, owned: Any, encoder: Encoder, batch: Batch) -> LossReport:
        return self.contrastive_loss(owned, self.embed_rows(owned, encoder, batch))

    def contrastive_loss(self, owned: Any, rows: Batch) -> LossReport:
        """Losses of all sizes are added up. Held-out rows that the criterion cannot use are ranked."""
        whole = rows.ragged("vectors")
        widths = [whole.values.shape[-1], *(size for size in self.sizes if size < whole.values.shape[-1])]
        losses = [self._losses(owned, rows, whole.with_values(whole.values[:, :width])) for width in widths]
        return LossReport({"siamese": Figure.over(torch.stack(losses).sum(0))})

    def _losses(self, owned: Any, rows: Batch, vectors: Ragged) -> Tensor:
        first, score, label = vectors.starts, rows.tensor("score"), rows.tensor("label")
        text, other = vectors.values[first], vectors.values[first + (vectors.lengths_here > 1)]
        match self.criterion:
            case "cosine" if not score.isnan().any():
                return cosine_loss(text, other, copied(score, vectors.device))
            case "cosent" if not score.isnan().any():
                return cosent_loss(text, other, score, self.scale)
            case "softmax" if (label != NONE).all():
                return F.cross_entropy(owned.logits(text, other), copied(label, vectors.device), reduction="none")
            case "triplet" if (vectors.lengths == len(TEXTS)).all():
                return triplet_loss(text, other, vectors.values[first + 2], self.margin)
            case _:
                return ranking_loss(vectors, rows.ragged("digests"), self.scale)

    def counts(self, batch: Batch) -> Mapping[str, int]:
        return {"siamese": 1 if self.criterion == "cosent" else batch.ragged("texts").num_rows}

    def outputs(self, owned: Any, encoder: Encoder, batch: Batch) -> list[np.ndarray]:
        """The normalized vectors of a row's texts, one after the other; for a pair followed by the logits of labels."""
        texts = batch.ragged("texts")
        apart = {name: Ragged(batch.tensor(name), texts.values) for name in ("tokens", "segments")}
        found = self._vectors(owned, encoder, Batch(apart)).float()
        rows = zip(texts.with_values(F.normalize(found)).rows(), texts.with_values(found).rows(), strict=True)
        flat = [
            torch.cat([unit.flatten(), owned.logits(*raw.split(1)).flatten()])
            if self.labels and len(raw) == 2
            else unit.flatten()
            for unit, raw in rows
        ]
        return [one.numpy() for one in torch.cat(flat).cpu().split([len(one) for one in flat])]

    def answer(self, example: Example, outputs: Sequence[np.ndarray]) -> Answer:
        """The vector of a single text; the cosine of two, and the label where labels were learned; for three also the
        cosine of the first and the third."""
        num_texts = len(example.samples[0]["texts"])  # type: ignore[arg-type]
        num_labels = len(self.labels) if num_texts == 2 else 0
        numbers, logits = np.split(outputs[0], [len(outputs[0]) - num_labels])
        vectors = numbers.reshape(num_texts, -1)
        if num_texts == 1:
            answer = VectorAnswer(vector=vectors[0].tolist())
        else:
            named = zip(("cosine", "negative_cosine"), vectors[1:] @ vectors[0], strict=False)
            answer = VectorAnswer({name: float(cosine) for name, cosine in named})
        if num_labels:
            answer |= one_of(self.labels, logits)
        answer.vectors = vectors
        return answer

    def score(self, answers: Sequence[Answer], gold: Sequence[Any]) -> dict[str, float]:
        """Figures for each kind of rows; for shorter vectors the main one, named with their size."""
        figures: dict[str, float] = {}
        for kind in MAIN:
            rows = [(answer, one) for answer, one in zip(answers, gold, strict=True) if one.kind == kind]
            if not rows:
                continue
            if kind == "labelled":
                predicted = [answer["label"] for answer, _ in rows]
                figures |= one_label_scores([one.value for _, one in rows], predicted, self.labels)
                continue
            vectors, values = [answer.vectors for answer, _ in rows], [one.value for _, one in rows]  # type: ignore[attr-defined]
            figures |= vector_figures(kind, vectors, values)
            for size in (size for size in self.sizes if size < vectors[0].shape[-1]):
                cut = [shortened(one, size) for one in vectors]
                figures[f"{MAIN[kind]}_{size}"] = vector_figures(kind, cut, values)[MAIN[kind]]
        return figures

    def error_severity(self, answer: Answer, gold: Gold) -> float:
        """Without a known scale of scores no single row is wrong."""
        match gold.kind:
            case "scored":
                return 0.0 if self.least is None else abs(answer["cosine"] - self._share(float(gold.value)))
            case "labelled":
                return label_error(answer, str(gold.value))
            case "triplets":
                return max(0.0, answer["negative_cosine"] - answer["cosine"])
            case "pairs":
                return max(0.0, 1 - answer["cosine"])
            case _:
                return 0.0

    def label_pairs(self, answers: Sequence[Answer], gold: Sequence[Any]) -> LabelPairs:
        pairs = zip(gold, answers, strict=True)
        found = [(str(one.value), answer["label"]) for one, answer in pairs if one.kind == "labelled"]
        return {"label": found} if found else {}

    def resample(self, answers: Sequence[Any], gold: Sequence[Gold]) -> Resampling:
        """A text is searched among those of all rows, whichever are drawn."""
        if not {one.kind for one in gold} <= {"pairs", "triplets"}:
            return super().resample(answers, gold)
        columns = row_figures([answer.vectors for answer in answers], [str(one.value) for one in gold])

        def score(numbers: np.ndarray) -> dict[str, float]:
            return {name: float(column[numbers].mean()) for name, column in columns.items()}

        return Resampling(len(answers), score)

    def with_pooling(self, pooling: TokenPooling, projection: Projection | None, width: int) -> Self:
        task = self.replace(pooling=self.pooling or pooling)
        if projection is None or task.dense is not None or projection.weight.shape[1] != width:
            return task
        return task.replace(dense=DenseSpec.of(projection))

    def load_projection(self, owned: nn.Module, projection: Projection) -> None:
        if self.dense == DenseSpec.of(projection):
            assert isinstance(owned, SiameseHead)
            owned.load_dense(projection)

    def projection(self, owned: nn.Module) -> Projection | None:
        assert isinstance(owned, SiameseHead)
        return owned.projection

    def labels_of(self, gold: Gold) -> list[str]:
        return [str(gold.value)] if gold.kind == "labelled" else []


def _rows_at(rows: Ragged, numbers: Tensor) -> Ragged:
    parts = rows.rows()
    return Ragged.of([parts[number] for number in numbers.tolist()])
