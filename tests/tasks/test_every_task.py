"""What holds for every task: it learns its rows by heart, answers in words, and no row depends on its neighbours."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.learning import TASKS, Learned, answers_to, learned, new_model, read

from bertie.batch import collate
from bertie.models.answering_rows import outputs_of, run_examples
from bertie.models.recipe import Recipe
from bertie.objectives.objective import FIRST
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.similarity import Similarity
from bertie.tasks.task import Task
from bertie.train.instances import split_rows


@pytest.fixture(params=list(TASKS))
def known(request: pytest.FixtureRequest) -> Learned:
    return learned(request.param)


@contextmanager
def counting(known: Learned) -> Iterator[list[int]]:
    """Grows by the tokens that enter the last feed-forward at each pass."""
    entered: list[int] = []
    last = known.model.get_submodule("encoder.stack.blocks.1.feed_forward.part")
    hook = last.register_forward_hook(lambda part, given, left: entered.append(len(given[0])))
    yield entered
    hook.remove()


def num_looked_at(known: Learned) -> int:
    batch, read_positions = collate(known.samples), known.task.read_positions
    if read_positions is None:
        return len(batch.tensor("tokens"))
    if read_positions == (FIRST,):
        return len(batch.tensor("candidates")) if "candidates" in batch else batch.ragged("tokens").num_rows
    return len(batch.tensor(read_positions[0]))


def test_a_handful_of_rows_is_learned_by_heart(known: Learned) -> None:
    scores = known.task.score(known.answers(), known.gold)
    assert scores[known.task.main] > 0.999, scores
    assert all(isinstance(value, float) for value in scores.values())


def test_learning_gets_better_than_chance_by_learning(known: Learned) -> None:
    before = new_model(known.task).loss(collate(known.samples)).loss()
    assert float(known.model.loss(collate(known.samples)).loss().detach()) < 0.1 * float(before.detach())


def test_answers_are_json_that_is_read_back(known: Learned) -> None:
    for answer in known.answers():
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_a_task_is_saved_with_its_model(known: Learned) -> None:
    recipe = known.model.recipe
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    (task,) = again.objectives
    assert task == known.task and isinstance(task, Task)
    assert answers_to(task, known.model, known.examples) == known.answers()


def test_rows_without_gold_are_answered_alike(known: Learned) -> None:
    asked_for = (*known.task.targets, *getattr(known.task, "aspects", ()))
    bare = [{role: cell for role, cell in row.items() if role not in asked_for} for row in known.rows]
    examples = [read(known.task, values) for values in bare]
    assert [example.gold for example in examples] == [None] * len(bare)
    assert answers_to(known.task, known.model, examples) == known.answers()


def test_loss_and_outputs_come_from_one_pass(known: Learned) -> None:
    """Each with the same bits as alone."""
    passes = list[int]()
    hook = known.model.encoder.register_forward_hook(lambda part, given, left: passes.append(1))
    report, outputs = run_examples(known.model, known.task, known.examples)
    hook.remove()
    twice = getattr(known.task, "criterion", None) == "simcse"  # which encodes each text twice, for its loss alone
    assert len(passes) == 1 + twice
    (batch,) = split_rows(known.samples, 4096)
    with torch.inference_mode():
        assert report.loss().equal(known.model.eval().loss(batch).loss())
    alone = outputs_of(known.model, known.task, known.examples)
    assert all(
        np.array_equal(one, other)
        for both in zip(outputs, alone, strict=True)
        for one, other in zip(*both, strict=True)
    )


def test_outputs_do_not_depend_on_neighbours(known: Learned) -> None:
    together = outputs_of(known.model, known.task, known.examples)
    alone = outputs_of(known.model, known.task, known.examples, max_tokens=1)
    for one, other in zip(together, alone, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_allclose(left, right, atol=1e-5)


def test_outputs_are_those_of_an_encoder_that_runs_whole(known: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
    with counting(known) as entered:
        some = outputs_of(known.model, known.task, known.examples, max_tokens=10_000)
        monkeypatch.setattr(Task, "last_states", lambda self, encoder, batch: encoder(batch).states)
        every = outputs_of(known.model, known.task, known.examples, max_tokens=10_000)
    for one, other in zip(some, every, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_allclose(left, right, atol=1e-6)
    assert entered == [num_looked_at(known), len(collate(known.samples).tensor("tokens"))]


def test_the_loss_is_that_of_an_encoder_that_runs_whole(known: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, looked_at = collate(known.samples), num_looked_at(known)
    results = []
    with counting(known) as entered:
        for look in (True, False):
            if not look:
                monkeypatch.setattr(type(known.task), "read_positions", None)
            known.model.zero_grad(set_to_none=True)
            loss = known.model.loss(batch).loss()
            loss.backward()
            results.append((loss.detach(), [parameter.grad for parameter in known.model.parameters()]))
    torch.testing.assert_close(results[0], results[1])
    assert entered == [looked_at, len(batch.tensor("tokens"))]


def test_micro_batches_add_up_and_tell_their_counts_beforehand(known: Learned) -> None:
    samples = known.samples
    whole, parts = known.model.loss(collate(samples)), [collate(samples[:1]), collate(samples[1:])]
    added = known.model.loss(parts[0]) + known.model.loss(parts[1])
    for name, figure in whole.losses.items():
        torch.testing.assert_close(added.losses[name].sum, figure.sum, rtol=1e-4, atol=1e-5)
        assert added.losses[name].count == figure.count
    counted = known.task.counts(collate(samples))  # type: ignore[attr-defined]
    assert counted == {name: int(figure.count) for name, figure in whole.losses.items()}


def test_what_is_right_is_not_wrong(known: Learned) -> None:
    wrong = [known.task.error_severity(answer, one) for answer, one in zip(known.answers(), known.gold, strict=True)]
    limit = 0.5 if isinstance(known.task, Similarity | Siamese) else 0.0
    assert all(0 <= value <= limit for value in wrong)


def test_what_is_wrong_is(known: Learned) -> None:
    """Each row's answer beside another row's gold of the same shape."""
    pairs = [
        (answer, gold)
        for answer, own in zip(known.answers(), known.gold, strict=True)
        for gold in known.gold
        if gold != own and alike(own, gold)
    ]
    assert any(known.task.error_severity(answer, gold) > 0 for answer, gold in pairs)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return one[1] != other[1]
    if isinstance(one, list) and one and one[0] in ("O", "B-PER", "B-LOC"):
        return len(one) == len(other)
    return not isinstance(one, int) or max(one, other) < 2  # candidates that all rows have


def test_labels_told_are_pairs_that_agree_where_all_is_right(known: Learned) -> None:
    told = known.task.label_pairs(known.answers(), known.gold)
    for pairs in told.values():
        assert pairs and all(gold == answer for gold, answer in pairs)
    assert bool(told) == (known.task.kind not in ("similarity", "siamese", "choice"))


def test_a_summary_is_one_line(known: Learned) -> None:
    assert "\n" not in known.task.summary()


def test_log_probs_read_no_target(known: Learned) -> None:
    if isinstance(known.task, Similarity | Siamese):
        with pytest.raises(NotImplementedError):
            known.model.log_probs(collate(known.samples))
        return
    bare = [
        {name: value for name, value in sample.items() if name not in ("label", "tags", "begin", "end")}
        for sample in known.samples
    ]
    for shares in known.model.log_probs(collate(bare)):
        torch.testing.assert_close(shares.exp().sum(-1), torch.ones(len(shares)), atol=1e-4, rtol=0)
