"""Adversaries: the moves are those of the papers, micro-batches are one batch, and nothing is left behind."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from bertie.batch import Batch, Places, Ragged, Sample, collate
from bertie.data.shapes import Pairs
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import RECIPES
from bertie.nn.crf import CRFSpec
from bertie.nn.heads import SequenceHeadSpec
from bertie.objectives.loss_report import LossReport
from bertie.objectives.masked_lm import MaskedLM
from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task
from bertie.train.learning.adversarial import FGM, AnyAdversary, Replay, VirtualAdversarial, divergence, scaled
from bertie.train.learning.gradients import known_counts
from bertie.train.learning.optimizer import AdamWSpec, Optimizer
from bertie.train.loop import accumulate, take_step

WHOLE = [[12, 12, 9, 7, 7, 4]]
PARTS = [[12, 12], [9, 7, 7], [4]]
HEAD = SequenceHeadSpec(dropout=0.0)
CLASSIFY = Classify(labels=("a", "b", "c"), head=HEAD)
TASKS: dict[str, Task] = {
    "classify": CLASSIFY,
    "multi-label": MultiLabel(labels=("a", "b", "c"), thresholds=(0.5,) * 3, head=HEAD),
    "aspects": Aspects(aspects={"food": ("bad", "good"), "price": ("high", "low", "none")}, head=HEAD),
    "choice": Choice(head=HEAD),
    "rank": Rank(head=HEAD),
    "answer": Answering(),
    "tag": Tagging(tags=("O", "B-x", "I-x"), dropout=0.0),
    "tag-crf": Tagging(tags=("O", "B-x", "I-x"), scheme="IOB2", crf=CRFSpec(), dropout=0.0),
}
ADVERSARIES: list[AnyAdversary] = [FGM(epsilon=2.0), VirtualAdversarial(epsilon=2.0)]
adversaries = pytest.mark.parametrize("adversary", ADVERSARIES, ids=["fgm", "vat"])


def sample(task: str, size: int, rng: np.random.Generator) -> Sample:
    """A row with whatever targets."""
    fields: dict[str, Any] = {"tokens": rng.integers(5, 65, size), "segments": np.arange(size) * 2 // size}
    if task == "multi-label":
        fields["label"] = rng.integers(0, 2, 3).astype(np.float32)
    elif task == "aspects":
        fields["label"] = rng.integers(0, 2, 2)
    elif task == "rank":
        fields["label"] = np.asarray(rng.integers(0, 2), np.float32)
    elif task == "choice":
        cut = size // 2 - 1
        fields["candidates"] = np.array([cut, size - cut] if size % 2 else [cut, 1, size - cut - 1])
        fields["label"] = np.asarray(rng.integers(0, 2))
    elif task == "answer":
        fields |= {"begin": np.asarray(rng.integers(0, size)), "end": np.asarray(size - 1)}
    elif task.startswith("tag"):
        fields |= {"tagged": Places("tokens", np.arange(1, size, 2)), "tags": rng.integers(0, 2, size // 2)}
    else:
        fields["label"] = np.asarray(rng.integers(0, 3))
    return fields


def batches(task: str = "classify", lengths: Sequence[Sequence[int]] = PARTS, seed: int = 0) -> list[Batch]:
    rng = np.random.default_rng(seed)
    return [collate([sample(task, size, rng) for size in sizes]) for sizes in lengths]


def gradients(
    model: Model, micros: list[Batch], adversary: AnyAdversary | None
) -> tuple[LossReport, dict[str, Tensor]]:
    model.zero_grad()
    torch.manual_seed(0)
    report = accumulate(model, micros, adversary=adversary)
    return report, {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}


def row_norms(rows: Ragged) -> list[float]:
    return [float(row.detach().norm()) for row in rows.rows()]


def test_fgm_is_what_a_hand_would_write(recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.new(recipe((CLASSIFY,))).double().train()
    (batch,) = batches(lengths=WHOLE)
    _, plain = gradients(model, [batch], None)
    _, found = gradients(model, [batch], FGM(epsilon=0.7))

    embed, sizes = model.encoder.embeddings.forward, WHOLE[0]
    states = embed(batch).detach().requires_grad_()
    monkeypatch.setattr(model.encoder.embeddings, "forward", lambda batch: states)
    model.loss(batch).loss().backward()
    assert states.grad is not None
    move = torch.cat([0.7 * row / torch.sqrt((row**2).sum()) for row in states.grad.split(sizes)])
    monkeypatch.setattr(model.encoder.embeddings, "forward", lambda batch: embed(batch) + move)
    model.zero_grad()
    model.loss(batch).loss().backward()

    assert found.keys() == plain.keys()
    weight = "heads.classify.output.weight"
    assert not torch.allclose(found[weight], 2 * plain[weight], rtol=1e-3)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], plain[name] + parameter.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name]().objectives[0].kind != "distillation"])
def test_a_move_of_nearly_nothing_doubles_the_gradient(name: str, draw_batches: Callable[..., list[Batch]]) -> None:
    """In any run, with dropout: both passes see the same."""
    model = Model.new(RECIPES[name](Size(depth=2, width=64, num_heads=2), 65)).train()
    drawn = draw_batches(model, PARTS)
    # Not all have a table for two segments.
    micros = [Batch({field: values for field, values in one.fields.items() if field != "segments"}) for one in drawn]
    report, plain = gradients(model, micros, None)
    moved, found = gradients(model, micros, FGM(epsilon=1e-6))
    assert {name: float(figure.sum) for name, figure in report.losses.items()} == {
        name: float(figure.sum) for name, figure in moved.losses.items()
    }
    for parameter, gradient in found.items():
        torch.testing.assert_close(gradient, 2 * plain[parameter], rtol=1e-3, atol=1e-5, msg=parameter)


def test_fgm_makes_the_loss_larger_and_tells_it(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe((CLASSIFY,), dropout=0.1)).train()
    told = gradients(model, batches(), FGM(epsilon=3.0))[0].means()
    assert told["adversarial_classify"] > told["classify"] + 0.01
    assert set(told) == {"classify", "accuracy", "adversarial_classify"}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("task", ["classify", "choice"])
def test_every_row_moves_equally_far(recipe: Callable[..., Recipe], task: str, frozen: bool) -> None:
    """Of the rows that the encoder sees: candidates are rows of their own. Also where the tables do not learn."""
    model = Model.new(recipe((TASKS[task],)))
    model.encoder.embeddings.requires_grad_(not frozen)
    (batch,) = batches(task, WHOLE)
    replay = Replay(model.encoder.embeddings, batch)
    replay.run(model.loss).loss().backward()
    (rows,) = replay.moves
    assert not rows.values.any()
    replay.move([rows.values.grad], 0.5)
    lengths = batch.tensor("candidates").tolist() if task == "choice" else WHOLE[0]
    assert replay.moves[0].sizes == lengths
    assert row_norms(replay.moves[0]) == pytest.approx([0.5] * len(lengths), rel=1e-5)


def test_the_smallest_directions_count_and_none_is_no_direction() -> None:
    rows = Ragged(torch.tensor([[3e-30, 0.0], [0.0, 4e-30], [0.0, 0.0], [5.0, 0.0]]), torch.tensor([2, 1, 1]))
    expected = torch.tensor([[1.2, 0.0], [0.0, 1.6], [0.0, 0.0], [2.0, 0.0]])
    torch.testing.assert_close(scaled(rows, 2.0), expected)


@pytest.mark.parametrize("name", TASKS)
def test_shares_of_tasks(recipe: Callable[..., Recipe], name: str) -> None:
    """They are probabilities, as many as the loss has terms, and the worst move of them can be learned from."""
    model = Model.new(recipe((TASKS[name],)))
    (batch,) = batches(name, WHOLE)
    shares = model.log_probs(batch)
    for one in shares:
        torch.testing.assert_close(one.exp().sum(-1), torch.ones(len(one)))
    (num_terms,) = (int(figure.count) for figure in model.loss(batch).losses.values())
    assert sum(map(len, shares)) == num_terms * (2 if name == "answer" else 1)
    told, found = gradients(model, [batch], VirtualAdversarial(epsilon=2.0))
    assert told.metrics["divergence"].mean > 0
    assert all(gradient.isfinite().all() for gradient in found.values())
    targets = ("label", "tags", "begin", "end")
    unlabelled = Batch({field: values for field, values in batch.fields.items() if field not in targets})
    assert all(map(torch.equal, model.log_probs(unlabelled), shares))


@pytest.mark.parametrize("task", [Similarity(head=HEAD), MaskedLM(samples=Pairs())], ids=["similarity", "masked-lm"])
def test_without_probabilities_there_is_nothing_to_compare(recipe: Callable[..., Recipe], task: Any) -> None:
    made = recipe((task,))
    with pytest.raises(SpecError, match=f"{task.kind} predicts no probabilities"):
        VirtualAdversarial().check(made)
    FGM().check(made)
    VirtualAdversarial().check(recipe((CLASSIFY,)))


def test_divergence_of_known_shares() -> None:
    wanted = torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]]).log()
    logits = torch.tensor([[0.25, 0.75, 0.0], [0.9, 0.1, 0.0]]).log().requires_grad_()
    found = divergence([wanted, wanted], [logits.log_softmax(-1), wanted])
    assert found.item() == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3), abs=1e-6)
    found.backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[-0.25, 0.25, 0.0], [0.0, 0.0, 0.0]]))


def divergences(model: Model, batch: Batch, adversary: VirtualAdversarial) -> tuple[float, float]:
    """In the direction that was sought, and in a random one."""
    replay = Replay(model.encoder.embeddings, batch)
    with torch.no_grad():
        wanted = replay.run(model.log_probs)
    adversary.seek(model, replay, wanted)
    sought = divergence(wanted, replay.run(model.log_probs))
    replay.move([torch.randn_like(move.values) for move in replay.moves], adversary.epsilon)
    return sought.item(), divergence(wanted, replay.run(model.log_probs)).item()


def test_the_direction_is_worse_than_a_random_one(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe((CLASSIFY,), dropout=0.1)).train()
    torch.manual_seed(0)
    adversary = VirtualAdversarial(epsilon=1.0)
    pairs = [divergences(model, batches(lengths=WHOLE, seed=seed)[0], adversary) for seed in range(8)]
    sought, random = np.mean(pairs, axis=0)
    assert np.min(pairs) >= 0
    assert sought > 5 * random


def test_without_a_move_there_is_no_divergence(recipe: Callable[..., Recipe]) -> None:
    """Though there is dropout."""
    model = Model.new(recipe((CLASSIFY,), dropout=0.1)).train()
    _, plain = gradients(model, batches(), None)
    report, found = gradients(model, batches(), VirtualAdversarial(epsilon=0.0))
    assert float(report.metrics["divergence"].sum) == pytest.approx(0.0, abs=1e-6)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, plain[name], rtol=1e-4, atol=1e-6)


def test_the_weight_is_that_of_the_mean_divergence(recipe: Callable[..., Recipe]) -> None:
    model = Model.new(recipe((CLASSIFY,))).double()
    plain, one, three = (
        gradients(model, batches(), adversary)[1]["heads.classify.output.weight"]
        for adversary in (None, VirtualAdversarial(), VirtualAdversarial(weight=3.0))
    )
    torch.testing.assert_close(three - plain, 3 * (one - plain))


@adversaries
@pytest.mark.parametrize("task", ["classify", "choice", "tag"])
def test_micro_batches_are_one_batch(recipe: Callable[..., Recipe], adversary: AnyAdversary, task: str) -> None:
    model = Model.new(recipe((TASKS[task],)))
    assert known_counts(model, batches(task)) is not None
    told, found = gradients(model, batches(task, PARTS), adversary)
    expected_told, expected = gradients(model, batches(task, WHOLE), adversary)
    assert told.means() == pytest.approx(expected_told.means(), rel=1e-4, abs=1e-6)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=2e-6, rtol=1e-3)


@adversaries
@pytest.mark.parametrize("failing", [None, 2, 3])
def test_nothing_is_left_behind(
    recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch, adversary: AnyAdversary, failing: int | None
) -> None:
    """Also where a pass fails in the middle of the encoder."""
    model = Model.new(recipe((CLASSIFY,), dropout=0.1)).train()
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    (batch,) = batches(lengths=WHOLE)
    numbers: list[Tensor] = []  # of the generator, where each pass ends
    forward = model.encoder.stack.forward

    def fail(*given: Any) -> Any:
        if len(numbers) + 1 == failing:
            raise RuntimeError("in the middle")
        numbers.append(torch.get_rng_state())
        return forward(*given)

    monkeypatch.setattr(model.encoder.stack, "forward", fail)
    torch.manual_seed(0)
    if failing is None or (failing == 3 and isinstance(adversary, FGM)):
        accumulate(model, [batch], adversary=adversary)
    else:
        with pytest.raises(RuntimeError, match="in the middle"):
            accumulate(model, [batch], adversary=adversary)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())
    assert all(torch.equal(numbers[0], one) for one in numbers)  # every pass drew the same


@adversaries
def test_a_run_goes_on_exactly(recipe: Callable[..., Recipe], adversary: AnyAdversary) -> None:
    adamw = AdamWSpec(rate=1e-3)

    def steps(model: Model, optimizer: Optimizer, numbers: range) -> None:
        for step in numbers:
            take_step(model, batches(seed=step), optimizer, 1.0, step=step, seed=7, adversary=adversary)

    made = recipe((CLASSIFY,), dropout=0.1)
    whole, first, second = (Model.new(made) for _ in range(3))
    steps(whole, adamw.build(whole), range(2))
    optimizer = adamw.build(first)
    steps(first, optimizer, range(1))
    second.load_state_dict(first.state_dict())
    resumed = adamw.build(second)
    resumed.set_state_tensors(second, optimizer.state_tensors(first))
    torch.manual_seed(99)  # what was drawn before must not matter
    steps(second, resumed, range(1, 2))
    assert all(map(torch.equal, whole.parameters(), second.parameters()))


@adversaries
def test_half_the_bits_are_enough(recipe: Callable[..., Recipe], adversary: AnyAdversary) -> None:
    model = Model.new(recipe((CLASSIFY,)))
    exact = gradients(model, batches(), adversary)[0].means()
    torch.manual_seed(0)
    short = accumulate(model, batches(), "bfloat16", adversary=adversary).means()
    assert short == pytest.approx(exact, rel=0.05)


def test_they_are_plain_data() -> None:
    adapter: TypeAdapter[AnyAdversary] = TypeAdapter(AnyAdversary)
    for adversary in ADVERSARIES:
        assert adapter.validate_json(adversary.to_json()) == adversary
    assert adapter.validate_python({"kind": "fgm"}) == FGM(epsilon=1.0)
    with pytest.raises(SpecError, match="iterations"):
        VirtualAdversarial.parse({"iterations": 0})
