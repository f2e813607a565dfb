"""Every recipe and every task on a device that is not the CPU.

torch's `meta` device has shapes and no numbers. An operation refuses a tensor that was left on the CPU, and whatever
asks for a number (`int(tensor)`, a mask as an index, `.tolist()`) fails: on a GPU it would wait. Only `Tensor.cpu` may
fetch numbers: here it fetches ones.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.learning import TASKS, new_model, read
from tests.test_every_recipe import corpus_of, every_recipe, rows_of, tiny, tokenizer, workshop
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bertie.batch import Sample, collate
from bertie.devices import CPU
from bertie.models.answering_rows import run_examples
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.models.teacher import learns_from_teacher
from bertie.nn.heads import VocabularyHead
from bertie.objectives.distillation import Student
from bertie.tasks.task import Task
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.instances import split_rows
from bertie.train.learning.adversarial import FGM, AnyAdversary, VirtualAdversarial
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.loop import take_step

__all__ = ["corpus_of", "rows_of", "tokenizer", "workshop"]  # fixtures
META = torch.device("meta")


class Together(TorchDispatchMode):
    """Refuses operations on tensors of two devices; some kernels for `meta` do not look. Single numbers may be
    anywhere, and torch wants the lengths of packed rows on the CPU."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        apart = {one.device for one in found if one.dim()} if len({one.device for one in found}) > 1 else set()
        if len(apart) > 1 and not any(word in str(function) for word in ("copy", "pack", "lstm")):
            raise AssertionError(f"{function} got {[(one.device.type, list(one.shape)) for one in found]}")
        return function(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def together() -> Iterator[None]:
    with Together():
        yield


@pytest.fixture(autouse=True)
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """What was copied from the device."""
    found: list[Tensor] = []
    cpu = Tensor.cpu

    def fetch(tensor: Tensor) -> Tensor:
        if tensor.device != META:
            return cpu(tensor)
        found.append(tensor)
        return torch.ones(tensor.shape, dtype=tensor.dtype)

    monkeypatch.setattr(Tensor, "cpu", fetch)
    return found


def on_meta(model: Model) -> Model:
    model.to(META)
    assert {one.device for one in (*model.parameters(), *model.buffers())} == {META}
    return model


def with_teacher(model: Model) -> Model:
    if learns_from_teacher(model):
        teacher = Model.new(tiny("bert"))
        for head in model.heads.values():
            assert isinstance(head, Student)
            assert isinstance(teacher.heads["masked-lm"], VocabularyHead)
            head.learn_from(teacher.encoder, teacher.heads["masked-lm"])
    return model


def step(model: Model, samples: list[Sample], micro_tokens: int, adversary: AnyAdversary | None = None) -> None:
    optimizer = AdamWSpec().build(model)
    result = take_step(model, split_rows(samples, micro_tokens), optimizer, 1.0, step=0, adversary=adversary)
    assert all(figure.sum.device == CPU for figure in result.report.losses.values())
    learned = [one for one in model.parameters() if one.grad is not None]
    assert learned and all(optimizer.parts[0].state[one]["exp_avg"].device == META for one in learned)


# --- recipes


@every_recipe
def test_a_recipe_takes_whole_steps(
    name: str, rows_of: Callable[[Recipe], list[Sample]], fetched: list[Tensor]
) -> None:
    recipe = tiny(name)
    model = on_meta(with_teacher(Model.new(recipe)))
    step(model, rows_of(recipe)[:4], 60)
    assert [one.dim() for one in fetched] == [1, 0]  # the figures of the step, and the norm of its gradients


@every_recipe
def test_a_recipe_keeps_its_tied_weights(name: str) -> None:
    here, there = Model.new(tiny(name)), on_meta(Model.new(tiny(name)))
    assert [one for one, _ in here.named_parameters()] == [one for one, _ in there.named_parameters()]


@every_recipe
def test_a_recipe_is_evaluated(name: str, rows_of: Callable[[Recipe], list[Sample]]) -> None:
    recipe = tiny(name)
    model = on_meta(with_teacher(Model.new(recipe))).eval()
    with torch.inference_mode():
        report = model.loss(collate(rows_of(recipe)).to(META))
    assert report.losses and report.fetched().means()


@every_recipe
def test_a_recipe_encodes(name: str, tokenizer: Tokenizer) -> None:
    model = Pretrained(Model.new(tiny(name)), tokenizer).to(META)
    assert model.device == META
    for how in ({}, {"pooling": "first"}, {"pooling": "max", "layers": 1, "normalize": True}):
        vectors = model.encode_report(["w1 w2 w3", "w4", ""], **how).vectors
        assert vectors.shape == (3, model.recipe.encoder.width)
    assert model.hidden_states("w1 w2").shape[1] == 4
    if "masked-lm" in model.model.heads:
        assert len(model.fill("w1 [MASK] w2", top=3)) == 3


# --- tasks


@pytest.mark.parametrize("name", TASKS)
def test_a_task_takes_whole_steps_and_answers(name: str) -> None:
    task, rows = TASKS[name]
    fitted = task.fitted(rows)
    model = on_meta(new_model(fitted))
    examples = [read(fitted, values) for values in rows]
    samples = [sample for example in examples for sample in example.samples]
    for micro_tokens in (10_000, 30):
        step(model, samples, micro_tokens)
    for adversary in (FGM(), VirtualAdversarial()):
        if isinstance(adversary, FGM) or type(fitted).log_probs is not Task.log_probs:
            step(model, samples, 10_000, adversary)
    report, outputs = run_examples(model, fitted, examples)
    assert report.losses and all(isinstance(one, np.ndarray) for each in outputs for one in each)
