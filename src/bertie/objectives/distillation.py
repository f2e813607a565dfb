"""Trains a student to predict masked tokens from the text, from a teacher's probabilities, and from the teacher's last
states. DistilBERT, section 3."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.errors import SpecError
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHead
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Vocabulary


class Student(VocabularyHead):
    """The head, and the teacher, which is no part of the module: it is neither trained nor saved."""

    teacher: tuple[Encoder, VocabularyHead] | None = None

    def learn_from(self, encoder: Encoder, head: VocabularyHead) -> None:
        for part in (encoder, head):
            part.eval().requires_grad_(False)
        self.teacher = (encoder, head)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """The teacher follows the student to another device."""
        for part in self.teacher or ():
            part._apply(fn, recurse)
        return super()._apply(fn, recurse)


class Distillation(MaskedLM):
    """Three losses, each with its weight. The teacher's probabilities are learned at masked tokens, like the text.
    States are compared where teacher and student have the same width."""

    kind: Literal["distillation"] = "distillation"  # type: ignore[assignment]
    head_fields: ClassVar[frozenset[str]] = frozenset({"head", "temperature", "soft", "hard", "cosine"})
    read_positions: ClassVar[tuple[str, ...] | None] = None  # all states are compared
    temperature: float = Field(default=2.0, gt=0)
    soft: float = Field(default=5.0, ge=0)  # the teacher's probabilities
    hard: float = Field(default=2.0, ge=0)  # the text
    cosine: float = Field(default=1.0, ge=0)  # the teacher's states

    def build(self, encoder: EncoderSpec, vocabulary: Vocabulary) -> Student:
        student = self.head.build(encoder, vocabulary.size, Student)
        assert isinstance(student, Student)
        return student

    def counts(self, batch: Batch) -> Mapping[str, int]:
        num_masked = len(batch.tensor("masked_targets"))
        return {"masked_lm": num_masked, "soft_labels": num_masked, "state_cosine": len(batch.tensor("tokens"))}

    def loss(self, owned: nn.Module, encoder: Encoder, batch: Batch) -> LossReport:
        assert isinstance(owned, Student)
        if owned.teacher is None:
            raise SpecError("the model has no teacher to learn from", hint="give its folder as `teacher`")
        states, masked, targets = encoder(batch).states.values, batch.tensor("masked"), batch.tensor("masked_targets")
        with torch.no_grad():
            teacher, teacher_head = owned.teacher
            teacher_states = teacher(batch).states.values
            teacher_logits = teacher_head(teacher_states[masked])
        logits = owned(states[masked])
        hard = F.cross_entropy(logits, targets, reduction="none")
        losses = {
            "masked_lm": Figure.over(hard, self.hard),
            "soft_labels": Figure.over(divergence(logits, teacher_logits, self.temperature), self.soft),
        }
        if teacher_states.shape == states.shape:
            distances = 1 - F.cosine_similarity(states, teacher_states, dim=-1)
            losses["state_cosine"] = Figure.over(distances, self.cosine)
        correct = (logits.detach().argmax(-1) == targets).float()
        agreeing = (logits.detach().argmax(-1) == teacher_logits.argmax(-1)).float()
        return LossReport(
            losses, {"masked_lm_accuracy": Figure.over(correct), "teacher_agreement": Figure.over(agreeing)}
        )


def divergence(logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """Returns [P], the Kullback-Leibler divergence from the teacher's distribution, both softened, on the scale of hard
    labels."""
    ours, theirs = (F.log_softmax(one / temperature, -1) for one in (logits, teacher_logits))
    return F.kl_div(ours, theirs, reduction="none", log_target=True).sum(-1) * temperature**2
