"""Teachers: who may teach whom, and what a student begins with."""

import string
from pathlib import Path

import pytest
import torch

import bertie
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert, distilbert
from bertie.models.teacher import begin_as, give_teacher, learns_from_teacher
from bertie.objectives.distillation import Student
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
VOCAB_SIZE = len(PIECES)
HEADS = {"heads.distillation.": "heads.masked-lm."}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return wordpiece_tokenizer(PIECES)


def teacher_recipe(depth: int = 4, width: int = 16, vocab_size: int = VOCAB_SIZE) -> Recipe:
    return bert(Size(depth=depth, width=width, num_heads=2), vocab_size)


def new_teacher(recipe: Recipe | None = None) -> Model:
    """Biases too differ from those of a new model."""
    model = Model.new(recipe or teacher_recipe(), seed=7)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def new_student(depth: int = 4, width: int = 16) -> Model:
    """Of half the depth."""
    return Model.new(distilbert(Size(depth=depth, width=width, num_heads=2), VOCAB_SIZE), seed=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("teacher")
    Pretrained(new_teacher(), tokenizer).save(folder)
    return folder


@pytest.mark.parametrize(("depth", "taken"), [(2, [0]), (4, [0, 2]), (6, [0, 1, 2]), (8, [0, 1, 2, 3])])
def test_layers_are_spread_evenly_over_the_teachers(depth: int, taken: list[int]) -> None:
    """A student of half this depth, a teacher of four layers."""
    student, teacher = new_student(depth), new_teacher()
    begin_as(student, teacher, HEADS)
    for own, other in enumerate(taken):
        layer = dict(student.get_submodule(f"encoder.stack.blocks.{own}").named_parameters())
        source = dict(teacher.get_submodule(f"encoder.stack.blocks.{other}").named_parameters())
        assert len(layer) == 12
        assert all(torch.equal(layer[name], source[name]) for name in layer)


def test_tables_and_head_are_the_teachers_too() -> None:
    student, teacher = new_student(), new_teacher()
    assert begin_as(student, teacher, HEADS) == len(list(student.parameters()))
    for name in ("encoder.embeddings.tables.tokens.weight", "encoder.embeddings.norm.bias"):
        assert torch.equal(student.get_parameter(name), teacher.get_parameter(name))
    for name in ("transform.dense.weight", "transform.norm.bias", "bias", "weight"):
        own, other = student.heads["distillation"], teacher.heads["masked-lm"]
        assert torch.equal(own.get_parameter(name), other.get_parameter(name))
    table = student.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert student.heads["distillation"].get_parameter("weight") is table, "what was tied is tied"
    assert table is not teacher.get_parameter("encoder.embeddings.tables.tokens.weight")


def test_what_is_of_another_shape_stays_as_it_was() -> None:
    student, before = new_student(width=8), new_student(width=8)
    assert begin_as(student, new_teacher(), HEADS) == 1  # one number a vocabulary entry, whatever the width
    changed = [
        name
        for (name, one), (_, other) in zip(student.named_parameters(), before.named_parameters(), strict=True)
        if not torch.equal(one, other)
    ]
    assert changed == ["heads.distillation.bias"]


def test_a_student_gets_the_teacher_of_a_folder(folder: Path, tokenizer: Tokenizer) -> None:
    student, loaded = new_student(), bertie.load(folder)
    before = {name: one.clone() for name, one in student.state_dict().items()}
    assert give_teacher(student, str(folder), tokenizer, begin=False) == (loaded.digest, [])
    assert all(torch.equal(one, before[name]) for name, one in student.state_dict().items())
    head = student.heads["distillation"]
    assert isinstance(head, Student) and head.teacher is not None
    teacher, teacher_head = head.teacher
    theirs = dict(loaded.model.encoder.named_parameters())
    assert all(torch.equal(one, theirs[name]) for name, one in teacher.named_parameters())
    assert torch.equal(teacher_head.get_parameter("bias"), loaded.model.heads["masked-lm"].get_parameter("bias"))
    give_teacher(student, str(folder), tokenizer, begin=True)
    name = "encoder.stack.blocks.1.mixer.part.output.weight"
    assert torch.equal(student.get_parameter(name), loaded.model.get_parameter(name.replace("blocks.1", "blocks.2")))


@pytest.mark.filterwarnings("ignore:transformers")
def test_a_student_may_teach_in_turn(folder: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    first, second = new_student(), new_student(depth=2)
    give_teacher(first, str(folder), tokenizer, begin=True)
    Pretrained(first, tokenizer).save(tmp_path / "first")
    give_teacher(second, str(tmp_path / "first"), tokenizer, begin=True)
    name = "encoder.stack.blocks.0.feed_forward.part.up.weight"
    assert torch.equal(second.get_parameter(name), first.get_parameter(name))
    assert torch.equal(
        second.get_parameter("heads.distillation.transform.dense.weight"),
        first.get_parameter("heads.distillation.transform.dense.weight"),
    )


def test_who_learns_from_a_teacher() -> None:
    assert learns_from_teacher(new_student())
    assert not learns_from_teacher(new_teacher())


def test_a_teacher_that_knows_other_tokens_is_refused(folder: Path) -> None:
    other = wordpiece_tokenizer([*PIECES[:-2], "z", "y"])
    with pytest.raises(SpecError, match=r"teacher's tokenizer .* is not that of the corpus .*teacher's own tokenizer"):
        give_teacher(new_student(), str(folder), other, begin=True)


def test_a_teacher_with_more_rows_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    Pretrained(new_teacher(teacher_recipe(vocab_size=40)), tokenizer).save(tmp_path)
    with pytest.raises(SpecError, match=f"teacher has 40 tokens, the student {VOCAB_SIZE}"):
        give_teacher(new_student(), str(tmp_path), tokenizer, begin=True)


def test_a_teacher_without_a_head_for_masked_tokens_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    recipe = teacher_recipe()
    Pretrained(new_teacher(recipe.replace(objectives=recipe.objectives[1:])), tokenizer).save(tmp_path)
    with pytest.raises(SpecError, match="no head that predicts masked tokens"):
        give_teacher(new_student(), str(tmp_path), tokenizer, begin=True)


def test_a_teacher_of_another_width_is_told(tmp_path: Path, tokenizer: Tokenizer) -> None:
    recipe = bert(Size(depth=2, width=32, num_heads=2), VOCAB_SIZE)
    Pretrained(Model.new(recipe), tokenizer).save(tmp_path)
    student = new_student()
    (note,) = give_teacher(student, str(tmp_path), tokenizer, begin=True).notes
    assert (
        f"the teacher is 32 wide, the student {student.recipe.encoder.width}" in note and "cannot be compared" in note
    )


def test_a_teacher_that_cannot_read_such_rows_is_refused(folder: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(SpecError, match="takes at most 512 tokens, rows have 1,000"):
        give_teacher(new_student(), str(folder), tokenizer, begin=False, length=1000)
