"""A step whose rows are compared: several passes, or several ranks, are one batch."""

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bertie.batch import Batch, collate
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.siamese.siamese_rows import Criterion
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.distribution import Ranks
from bertie.train.instances import split_rows
from bertie.train.learning.adversarial import FGM
from bertie.train.learning.grad_cache import contrastive_objective
from bertie.train.loop import accumulate

ROWS = [
    {
        "text": " ".join(f"w{(7 * number + word) % 60}" for word in range(3 + number % 4)),
        "other": " ".join(f"w{(5 * number + word) % 60}" for word in range(2 + number % 3)),
        "score": str(number % 5),
    }
    for number in range(12)
]
CRITERIA: list[Criterion] = ["ranking", "simcse", "cosent"]


def samples_of(task: Siamese, tokenizer: Tokenizer) -> list[Any]:
    return [task.read(row, tokenizer, 16).samples[0] for row in ROWS]


def gradients(model: Model) -> dict[str, Tensor]:
    return {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}


def learned(model: Model, micros: list[Batch], **options: Any) -> tuple[dict[str, float], dict[str, Tensor]]:
    model.zero_grad()
    return accumulate(model, micros, **options).means(), gradients(model)


def new_model(criterion: Criterion, recipe: Callable[..., Recipe], dropout: float = 0.0) -> tuple[Siamese, Model]:
    task = Siamese(criterion=criterion).fitted(ROWS)
    return task, Model.new(recipe((task,), dropout=dropout)).train()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_micro_batches_are_one_batch(criterion: Criterion, recipe: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    task, model = new_model(criterion, recipe)
    samples = samples_of(task, tokenizer)
    micros = split_rows(samples, 40)
    assert len(micros) > 2 and contrastive_objective(model, micros, Ranks()) is not None
    told, found = learned(model, micros)
    whole, expected = learned(model, [collate(samples)])
    assert told == pytest.approx(whole, abs=1e-5)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-3)


def test_a_loss_of_single_rows_needs_no_company(recipe: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    task, model = new_model("cosine", recipe)
    assert contrastive_objective(model, split_rows(samples_of(task, tokenizer), 40), Ranks()) is None


def test_one_pass_has_all_that_is_compared(recipe: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    task, model = new_model("ranking", recipe)
    assert contrastive_objective(model, [collate(samples_of(task, tokenizer))], Ranks()) is None


def test_the_second_pass_has_the_dropout_of_the_first(recipe: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    """The gradient is that of the loss which is told: a small step against it makes that very loss smaller."""
    task, model = new_model("ranking", recipe, dropout=0.1)
    micros = split_rows(samples_of(task, tokenizer), 60)

    def told() -> tuple[float, dict[str, Tensor]]:
        torch.manual_seed(5)
        figures, found = learned(model, micros)
        return figures["siamese"], found

    before, found = told()
    again, same = told()
    assert before == again and all(torch.equal(found[name], same[name]) for name in found)
    norm = float(torch.stack([gradient.square().sum() for gradient in found.values()]).sum())
    step = 1e-3 / norm
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in found:
                parameter.sub_(step * found[name])
    assert told()[0] == pytest.approx(before - 1e-3, abs=2e-4)


class Company(Ranks):
    """A rank that is a thread: what all gather lies in a list."""

    slots: list[Tensor | None]
    barrier: threading.Barrier

    def gather(self, rows: Tensor) -> list[Tensor]:
        self.slots[self.rank] = rows
        self.barrier.wait()
        found = [slot for slot in self.slots if slot is not None]
        self.barrier.wait()
        return found

    def sum_gradients(self, model: torch.nn.Module) -> None:
        """Left to the test."""


@pytest.mark.parametrize("num_rows", [4, 5])
def test_rows_of_other_ranks_are_compared_too(
    num_rows: int, recipe: Callable[..., Recipe], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, model = new_model("ranking", recipe)
    samples = samples_of(task, tokenizer)[: 2 * num_rows - 1]
    Company.slots, Company.barrier = [None, None], threading.Barrier(2, timeout=60)
    models = [copy.deepcopy(model) for _ in range(2)]
    told: dict[int, dict[str, float]] = {}

    def run(rank: int) -> None:
        told[rank] = learned(models[rank], split_rows(samples[rank::2], 40), ranks=Company(rank, 2))[0]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole, expected = learned(model, [collate(samples)])
    assert told[0] == pytest.approx(whole, abs=1e-5) and told[1] == pytest.approx(whole, abs=1e-5)
    parts = [gradients(one) for one in models]
    for name, gradient in expected.items():
        torch.testing.assert_close(parts[0][name] + parts[1][name], gradient, atol=1e-5, rtol=1e-3)


def test_an_adversary_does_not_go_with_several_passes(recipe: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    task, model = new_model("ranking", recipe)
    samples = samples_of(task, tokenizer)
    with pytest.raises(SpecError, match="cannot compare rows across several micro-batches; choose a smaller `batch`"):
        learned(model, split_rows(samples, 40), adversary=FGM())
    told, _ = learned(model, [collate(samples)], adversary=FGM())
    assert np.isfinite(told["adversarial_siamese"])
