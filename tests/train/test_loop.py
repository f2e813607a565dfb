"""Steps: micro-batches are one batch, steps depend on nothing but their number, and nonsense stops it."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bertie.batch import Batch
from bertie.data.shapes import Pairs
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.products import linear
from bertie.nn.products.choice import use_engine
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.sentence_order import SentenceOrder
from bertie.train.learning.gradients import known_counts
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.loop import NotFiniteError, StepResult, accumulate, step_seed, take_step

Draw = Callable[..., list[Batch]]
WHOLE = [[30, 30, 24, 24, 9, 8]]
PARTS = [[30, 30], [24, 24, 9], [8]]
ORDER = (MaskedLM(samples=Pairs(order=True)), SentenceOrder())


class SilentLM(MaskedLM):
    """A masked LM whose count only its loss tells."""

    counts: ClassVar[None] = None  # type: ignore[assignment]


class SilentRecipe(Recipe):
    objectives: tuple[Any, ...] = ()


def silent(made: Recipe) -> Recipe:
    objectives = (SilentLM(samples=ORDER[0].samples), ORDER[1])
    return SilentRecipe(name=made.name, encoder=made.encoder, objectives=objectives)


def gradients(model: Model, micros: list[Batch]) -> tuple[dict[str, float], dict[str, Tensor]]:
    model.zero_grad()
    report = accumulate(model, micros)
    return report.means(), {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("counting", [False, True])
def test_micro_batches_are_one_batch(recipe: Callable[..., Recipe], draw_batches: Draw, counting: bool) -> None:
    made = recipe(ORDER)
    if not counting:
        made = silent(made)
    model = Model.new(made)
    micros = draw_batches(model, PARTS)
    assert (known_counts(model, micros) is not None) == counting
    told, found = gradients(model, micros)
    expected_told, expected = gradients(model, draw_batches(model, WHOLE))
    assert told == pytest.approx(expected_told, abs=1e-6)
    assert found.keys() == expected.keys() == dict(model.named_parameters()).keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-6, rtol=1e-4)


def test_both_ways_of_counting_give_the_same_bits(recipe: Callable[..., Recipe], draw_batches: Draw) -> None:
    made = recipe(ORDER, dropout=0.1)
    found = []
    for one in (made, silent(made)):
        model = Model.new(one).train()
        torch.manual_seed(1)
        found.append(gradients(model, draw_batches(model, PARTS))[1])
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_what_parts_ask_for_counts_once_a_step(
    recipe: Callable[..., Recipe], draw_batches: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model.new(recipe())
    weight = model.get_parameter("encoder.pooler.dense.weight")
    plain = gradients(model, draw_batches(model, PARTS))[1]["encoder.pooler.dense.weight"]
    monkeypatch.setattr(model, "auxiliary_loss", lambda: weight.sum())
    more = gradients(model, draw_batches(model, PARTS))[1]["encoder.pooler.dense.weight"]
    torch.testing.assert_close(more, plain + 1)


def run(model: Model, draw: Draw, num_steps: int, seed: int = 0) -> list[StepResult]:
    adamw = AdamWSpec(rate=1e-3)
    optimizer = adamw.build(model)
    return [
        take_step(model, draw(model, PARTS, seed=step), optimizer, 1 / (step + 1), step=step, seed=seed)
        for step in range(num_steps)
    ]


def test_a_run_depends_on_its_seed_alone(recipe: Callable[..., Recipe], draw_batches: Draw) -> None:
    models: list[Model] = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(models))  # what was drawn before must not matter
        models.append(Model.new(recipe(dropout=0.1)))
        run(models[-1], draw_batches, 3, seed=seed)
    first, same, other = (list(model.parameters()) for model in models)
    assert all(torch.equal(one, two) for one, two in zip(first, same, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(first, other, strict=True))


def test_results_tell_the_step(recipe: Callable[..., Recipe], draw_batches: Draw) -> None:
    results = run(Model.new(recipe()), draw_batches, 4)
    assert [result.step for result in results] == [0, 1, 2, 3]
    assert [result.rate for result in results] == pytest.approx([1e-3, 1e-3 / 2, 1e-3 / 3, 1e-3 / 4])
    assert {result.num_tokens for result in results} == {125}
    assert set(results[0].report.losses) == {"masked_lm", "next_sentence"}
    assert all(result.norm > 0 for result in results)


def test_seeds_of_steps_differ_by_every_part() -> None:
    seeds = {step_seed(seed, step, rank) for seed in range(3) for step in range(50) for rank in range(3)}
    assert len(seeds) == 450
    assert step_seed(1, 2) == step_seed(1, 2, 0)
    torch.manual_seed(max(seeds))  # torch takes them all


def test_a_loss_that_is_not_finite_stops_before_the_weights_change(
    recipe: Callable[..., Recipe], draw_batches: Draw
) -> None:
    model = Model.new(recipe())
    adamw = AdamWSpec()
    with torch.no_grad():
        model.get_parameter("heads.next-sentence.output.weight").fill_(float("inf"))
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    with pytest.raises(NotFiniteError, match="next_sentence is not finite at step 3") as raised:
        take_step(model, draw_batches(model, PARTS), adamw.build(model), 1.0, step=2)
    assert raised.value.step == 2
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())


def test_a_gradient_that_is_not_finite_stops_it_too(
    recipe: Callable[..., Recipe], draw_batches: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model.new(recipe())
    bias = model.get_parameter("heads.masked-lm.bias")
    monkeypatch.setattr(model, "auxiliary_loss", lambda: bias.sum() * float("nan"))
    with pytest.raises(NotFiniteError, match="gradient is not finite at step 1"):
        run(model, draw_batches, 1)


def test_half_the_bits_give_nearly_the_same(recipe: Callable[..., Recipe], draw_batches: Draw) -> None:
    model = Model.new(recipe(ORDER), 0)
    micros = draw_batches(model, PARTS)
    exact = float(accumulate(model, micros).loss())
    model.zero_grad()
    matrix = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    with use_engine("onednn-bfloat16"):  # products as small as these are torch's otherwise
        short = float(accumulate(model, micros, "bfloat16").loss())
        rounds = not torch.equal(linear(matrix, matrix), F.linear(matrix, matrix))  # not on every processor
    assert short == pytest.approx(exact, rel=0.02)
    assert (short != exact) == rounds
    assert all(one.grad.dtype == torch.float32 for one in model.parameters() if one.grad is not None)
