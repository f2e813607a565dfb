"""Gives a student model its teacher, which is opened from a folder."""

from typing import NamedTuple

import torch

from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import load
from bertie.nn.heads import VocabularyHead
from bertie.objectives.distillation import Student
from bertie.objectives.masked_lm import MaskedLM
from bertie.text.tokenizers.tokenizer import Tokenizer

BLOCKS = "encoder.stack.blocks."


def learns_from_teacher(model: Model) -> bool:
    return any(isinstance(head, Student) for head in model.heads.values())


class Taught(NamedTuple):
    digest: str  # of the teacher
    notes: list[str]  # what the student cannot learn from it


def give_teacher(model: Model, folder: str, tokenizer: Tokenizer, begin: bool, length: int = 0) -> Taught:
    """Opens the teacher and checks that it has the same tokens, takes rows of this length and predicts masked tokens.
    With `begin` the student starts from the teacher's weights with layers left out, wherever shapes allow."""
    teacher = load(folder)
    if teacher.limit is not None and length > teacher.limit:
        raise SpecError(
            f"the teacher takes at most {teacher.limit:,} tokens, rows have {length:,}",
            where=folder,
            hint=f"give `max_length={teacher.limit}`",
        )
    if teacher.tokenizer is not None and teacher.tokenizer.digest != tokenizer.digest:
        raise SpecError(
            f"the teacher's tokenizer ({teacher.tokenizer.digest}) is not that of the corpus ({tokenizer.digest})",
            where=folder,
            hint="build the corpus with the teacher's own tokenizer",
        )
    if teacher.recipe.vocab_size != model.recipe.vocab_size:
        sizes = f"{teacher.recipe.vocab_size:,} tokens, the student {model.recipe.vocab_size:,}"
        raise SpecError(f"the teacher has {sizes}", where=folder)
    name = next((one.name for one in teacher.recipe.objectives if isinstance(one, MaskedLM)), None)
    if name is None:
        raise SpecError("the teacher has no head that predicts masked tokens", where=folder)
    teacher_head = teacher.model.heads[name]
    assert isinstance(teacher_head, VocabularyHead)
    notes = []
    widths = teacher.recipe.encoder.width, model.recipe.encoder.width
    if widths[0] != widths[1]:
        begun = ", and the student starts from random weights" if begin else ""
        notes.append(
            f"the teacher is {widths[0]} wide, the student {widths[1]}: their states cannot be compared{begun}"
        )
    for own_name, head in model.heads.items():
        if isinstance(head, Student):
            if begin:
                begin_as(model, teacher.model, {f"heads.{own_name}.": f"heads.{name}."})
            head.learn_from(teacher.model.encoder, teacher_head)
    return Taught(teacher.digest, notes)


def begin_as(student: Model, teacher: Model, renamed: dict[str, str]) -> int:
    """Copies layers spread evenly over the teacher's, and all else of the same name and shape; returns the number of
    tensors."""
    taught = dict(teacher.named_parameters(remove_duplicate=False))
    depths = student.recipe.encoder.stack.depth, teacher.recipe.encoder.stack.depth
    for layer in range(depths[0]):
        renamed = {**renamed, f"{BLOCKS}{layer}.": f"{BLOCKS}{layer * depths[1] // depths[0]}."}
    count = 0
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            begins = next((begin for begin in renamed if name.startswith(begin)), "")
            other = taught.get(renamed.get(begins, "") + name.removeprefix(begins))
            if other is not None and other.shape == parameter.shape:
                parameter.copy_(other)
                count += 1
    return count
