"""Distillation: three losses against their formulas, and a teacher that is there without being a part."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bertie.batch import Batch, Sample, collate
from bertie.errors import SpecError
from bertie.models.filling import kept_tensors
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert, distilbert
from bertie.nn.encoder import Encoder
from bertie.nn.heads import VocabularyHead
from bertie.objectives.distillation import Distillation, Student, divergence
from bertie.objectives.objective import Vocabulary

VOCAB_SIZE = 50
VOCABULARY = Vocabulary(VOCAB_SIZE, mask=4, special=frozenset(range(5)))


def sized(recipe: Recipe) -> Recipe:
    """With larger weights than the usual, so that opinions differ."""
    return recipe.changed({"encoder.initial_std": 0.3})


STUDENT = sized(distilbert(Size(depth=2, width=16, num_heads=2), VOCAB_SIZE))


def new_teacher(width: int = 16) -> Model:
    return Model.new(sized(bert(Size(depth=2, width=width, num_heads=2), VOCAB_SIZE)), seed=7)


def taught(teacher: Model | None = None) -> Model:
    model = Model.new(STUDENT, seed=1)
    student_of(model).learn_from(*parts_of(teacher or new_teacher()))
    return model


def student_of(model: Model) -> Student:
    head = model.heads["distillation"]
    assert isinstance(head, Student)
    return head


def parts_of(teacher: Model) -> tuple[Encoder, VocabularyHead]:
    head = teacher.heads["masked-lm" if "masked-lm" in teacher.heads else "distillation"]
    assert isinstance(head, VocabularyHead)
    return teacher.encoder, head


@pytest.fixture
def batch() -> Batch:
    rng = np.random.default_rng(0)
    samples: list[Sample] = []
    for length in (20, 40):
        tokens = np.array([2, *rng.integers(5, VOCAB_SIZE, length), 3])
        samples.append(Distillation().corrupt({"tokens": tokens}, VOCABULARY, rng))
    return collate(samples)


def test_losses_are_their_formulas_with_their_weights(batch: Batch) -> None:
    teacher = new_teacher()
    model = taught(teacher).eval()
    report = model.loss(batch)
    places, targets = batch.tensor("masked"), batch.tensor("masked_targets")
    ours, theirs = model.encoder(batch).states.values, teacher.encoder(batch).states.values
    logits, wanted = model.heads["distillation"](ours[places]), teacher.heads["masked-lm"](theirs[places])
    soft = F.kl_div((logits / 2).log_softmax(-1), (wanted / 2).softmax(-1), reduction="sum") * 4
    torch.testing.assert_close(report.losses["soft_labels"].sum, soft)
    torch.testing.assert_close(report.losses["masked_lm"].sum, F.cross_entropy(logits, targets, reduction="sum"))
    angles = (ours * theirs).sum(-1) / (ours.norm(dim=-1) * theirs.norm(dim=-1))
    torch.testing.assert_close(report.losses["state_cosine"].sum, (1 - angles).sum())
    means = report.means()
    expected = 5 * means["soft_labels"] + 2 * means["masked_lm"] + means["state_cosine"]
    assert float(report.loss().detach()) == pytest.approx(expected, rel=1e-5)
    agreement = (logits.argmax(-1) == wanted.argmax(-1)).float().mean()
    assert means["teacher_agreement"] == pytest.approx(float(agreement))


def test_counts_are_known_beforehand(batch: Batch) -> None:
    counts = Distillation().counts(batch)
    assert counts == {name: int(figure.count) for name, figure in taught().loss(batch).losses.items()}
    assert counts == {"masked_lm": 9, "soft_labels": 9, "state_cosine": 64}


def test_the_teacher_is_no_part_of_the_model() -> None:
    alone, model = Model.new(STUDENT, seed=1), taught()
    assert list(model.state_dict()) == list(alone.state_dict())
    assert list(kept_tensors(model)) == list(kept_tensors(alone))
    assert [name for name, _ in model.named_modules()] == [name for name, _ in alone.named_modules()]
    assert sum(one.numel() for one in model.parameters()) == sum(one.numel() for one in alone.parameters())


def test_the_teacher_is_not_trained_and_has_no_dropout(batch: Batch) -> None:
    teacher = new_teacher().train()
    before = {name: one.clone() for name, one in teacher.state_dict().items()}
    model = taught(teacher).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.loss(batch).loss().backward()
    optimizer.step()
    assert all(one.grad is None for part in parts_of(teacher) for one in part.parameters())
    assert all(torch.equal(one, before[name]) for name, one in teacher.state_dict().items())
    assert not any(part.training for part in parts_of(teacher))
    student = student_of(model)
    assert student.teacher is not None
    with torch.no_grad():
        states = [student.teacher[0](batch).states.values for _ in range(2)]
    assert torch.equal(*states)


def test_every_part_of_the_student_learns(batch: Batch) -> None:
    model = taught()
    model.loss(batch).loss().backward()
    assert all(one.grad is not None and one.grad.any() for one in model.parameters())


def test_a_student_that_is_its_teacher_has_nothing_to_learn_from_it(batch: Batch) -> None:
    model = taught(Model.new(STUDENT, seed=1)).eval()
    report = model.loss(batch)
    means = report.means()
    assert means["soft_labels"] == pytest.approx(0, abs=1e-5)
    assert means["state_cosine"] == pytest.approx(0, abs=1e-5)
    assert means["teacher_agreement"] == 1
    assert means["masked_lm"] > 1


def test_states_of_another_width_are_not_compared(batch: Batch) -> None:
    report = taught(new_teacher(width=32)).loss(batch)
    assert set(report.losses) == {"masked_lm", "soft_labels"}
    report.loss({name: torch.tensor(count) for name, count in Distillation().counts(batch).items()}).backward()


def test_divergence_is_in_the_scale_of_hard_labels_at_any_temperature() -> None:
    """At 1 it is the divergence itself; softened without end it is half the variance of what the logits differ by."""
    torch.manual_seed(0)
    logits, wanted = torch.randn(3, 9, dtype=torch.float64), torch.randn(3, 9, dtype=torch.float64)
    p, q = wanted.softmax(-1), logits.softmax(-1)
    torch.testing.assert_close(divergence(logits, wanted, 1.0), (p * (p / q).log()).sum(-1))
    half = (logits - wanted).var(-1, unbiased=False) / 2
    torch.testing.assert_close(divergence(logits, wanted, 1e4), half, rtol=1e-3, atol=0)
    assert not divergence(logits, logits + 3, 2.0).abs().gt(1e-12).any()


def test_without_a_teacher_there_is_nothing_to_learn(batch: Batch) -> None:
    with pytest.raises(SpecError, match="no teacher to learn from; give its folder as `teacher`"):
        Model.new(STUDENT).loss(batch)


def test_the_head_is_that_of_a_masked_language_model(batch: Batch) -> None:
    """Its weight is the table's, and it can be asked without a teacher."""
    model = Model.new(STUDENT)
    assert student_of(model).weight is model.encoder.get_parameter("embeddings.tables.tokens.weight")
    states = model.encoder(batch).states.values[batch.tensor("masked")]
    assert model.heads["distillation"](states).shape == (9, VOCAB_SIZE)
