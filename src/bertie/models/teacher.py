"""A model that learns from another one, and the other's folder enter; the model with its teacher leaves."""

from typing import NamedTuple

import torch

from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import load
from bertie.nn.heads import VocabularyHead
from bertie.objectives.distillation import Student
from bertie.objectives.masked_lm import MaskedLM
from bertie.text.tokenizer import Tokenizer

BLOCKS = "encoder.stack.blocks."


def learns_from_teacher(model: Model) -> bool:
    return any(isinstance(head, Student) for head in model.heads.values())


class Taught(NamedTuple):
    digest: str  # of the teacher
    notes: list[str]  # what cannot be learned from it


def give_teacher(model: Model, folder: str, tokenizer: Tokenizer, begin: bool, length: int = 0) -> Taught:
    """The teacher must know the same tokens, take rows of this length and have a head that tells masked ones. With
    `begin` the student begins as the teacher with layers left out, wherever shapes allow."""
    teacher = load(folder)
    if teacher.limit is not None and length > teacher.limit:
        raise SpecError(
            f"the teacher takes at most {teacher.limit:,} tokens, rows have {length:,}",
            where=folder,
            hint=f"give --length {teacher.limit}",
        )
    if teacher.tokenizer is not None and teacher.tokenizer.digest != tokenizer.digest:
        raise SpecError(
            f"the teacher's tokenizer ({teacher.tokenizer.digest}) is not the corpus's ({tokenizer.digest})",
            where=folder,
            hint="build the corpus with the teacher's own tokenizer",
        )
    if teacher.recipe.vocab_size != model.recipe.vocab_size:
        sizes = f"{teacher.recipe.vocab_size:,} tokens, the student {model.recipe.vocab_size:,}"
        raise SpecError(f"the teacher knows {sizes}", where=folder)
    kind = next((one.kind for one in teacher.recipe.objectives if isinstance(one, MaskedLM)), None)
    if kind is None:
        raise SpecError("the teacher has no head that tells masked tokens", where=folder)
    teacher_head = teacher.model.heads[kind]
    assert isinstance(teacher_head, VocabularyHead)
    notes = []
    widths = teacher.recipe.encoder.width, model.recipe.encoder.width
    if widths[0] != widths[1]:
        begun = ", and the student begins with random weights" if begin else ""
        notes.append(
            f"the teacher is {widths[0]} wide, the student {widths[1]}: their states cannot be compared{begun}"
        )
    for own_kind, head in model.heads.items():
        if isinstance(head, Student):
            if begin:
                begin_as(model, teacher.model, {f"heads.{own_kind}.": f"heads.{kind}."})
            head.learn_from(teacher.model.encoder, teacher_head)
    return Taught(teacher.digest, notes)


def begin_as(student: Model, teacher: Model, renamed: dict[str, str]) -> int:
    """Layers spread evenly over the teacher's, and all else of the same name and shape. Returns how many tensors."""
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
