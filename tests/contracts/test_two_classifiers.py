"""A model with two classifiers: heads, losses and batches are told apart by the names of their objectives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.contracts.planted import save_and_load, tiny_encoder

from bertie.batch import Batch, collate
from bertie.errors import SpecError
from bertie.models.answering_rows import outputs_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.models.recipes import SIZES, bert
from bertie.objectives.masked_lm import MaskedLM
from bertie.tasks.classification import Classify
from bertie.tasks.task import Example
from bertie.train.loop import accumulate

NUM_WORDS = 8
TOPIC = Classify(name="topic", labels=("one", "two", "three"))
TASKS = (Classify(labels=("low", "high")), TOPIC)


def new_model() -> Model:
    return Model.new(Recipe(name="two", encoder=tiny_encoder(NUM_WORDS), objectives=TASKS), seed=0)


def rows_of(task: Classify, num_rows: int = 48) -> list[dict[str, np.ndarray]]:
    """The first word decides the one label, the last word the other."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, NUM_WORDS + 1, (num_rows, 4))
    labels = words[:, -1] % 3 if task.name == "topic" else (words[:, 0] > NUM_WORDS // 2).astype(np.int64)
    return [{"tokens": row, "label": np.asarray(label)} for row, label in zip(words, labels, strict=True)]


def batch_for(task: Classify) -> Batch:
    return replace(collate(rows_of(task)), only=task.name)


def test_both_learn_and_are_saved_and_loaded(tmp_path: Path) -> None:
    model = new_model()
    assert [head.get_parameter("output.weight").shape[0] for head in model.heads.values()] == [2, 3]
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(240):
        optimizer.zero_grad()
        model.loss(batch_for(TASKS[step % 2])).loss().backward()
        optimizer.step()
    accuracies: dict[str, float] = {}
    for task in TASKS:
        accuracies |= model.loss(batch_for(task)).detached().means()
    assert accuracies["accuracy"] > 0.95 and accuracies["topic.accuracy"] > 0.95
    loaded = save_and_load(model.eval(), tmp_path / "model", Recipe, batch_for(TOPIC))
    assert list(loaded.heads) == ["classify", "topic"]
    for task in TASKS:
        examples = [Example((row,)) for row in rows_of(task)]
        answers = outputs_of(loaded, task, examples)
        right = [
            int(answer[0].argmax()) == int(row["label"]) for answer, row in zip(answers, rows_of(task), strict=True)
        ]
        assert np.mean(right) > 0.95


def test_a_batch_is_for_one_of_them_or_for_all() -> None:
    model = new_model()
    assert list(model.loss(batch_for(TASKS[0])).losses) == ["classify"]
    assert list(model.loss(batch_for(TOPIC)).losses) == ["topic.classify"]
    assert list(model.loss(collate(rows_of(TASKS[0]))).losses) == ["classify", "topic.classify"]
    assert batch_for(TOPIC).to("cpu").with_fields({}).renamed({"tokens": "tokens"}).only == "topic"


def test_a_batch_for_one_does_not_touch_the_other() -> None:
    model = new_model()
    model.loss(batch_for(TOPIC)).loss().backward()
    assert all(one.grad is None for one in model.heads["classify"].parameters())
    assert all(one.grad is not None for one in model.heads["topic"].parameters())


def test_micro_batches_of_a_named_objective_are_one_batch() -> None:
    """Counts that are known before have the same names as the losses."""
    whole, parts = new_model().eval(), new_model().eval()
    rows = rows_of(TOPIC)
    reports = [
        accumulate(whole, [replace(collate(rows), only="topic")]),
        accumulate(parts, [replace(collate(some), only="topic") for some in (rows[:5], rows[5:])]),
    ]
    assert reports[0].means() == pytest.approx(reports[1].means())
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_name_is_written_down_only_where_it_is_not_the_kind() -> None:
    assert '"name"' not in Classify().to_json() and MaskedLM().name == "masked-lm"
    assert '"name": "topic"' in TOPIC.to_json()
    assert Classify.from_json(TOPIC.to_json()) == TOPIC
    recipe = new_model().recipe
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert TOPIC.replace(labels=("a", "b")).name == "topic"


@pytest.mark.parametrize("name", ["", "a.b", "a b", "keys", "train", "forward"])
def test_a_name_that_torch_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="cannot be the name of a head"):
        Classify.parse({"name": name})


def test_a_masked_lm_of_another_name_is_saved_too(tmp_path: Path) -> None:
    objectives = (MaskedLM(), MaskedLM(name="second", rate=0.3))
    model = Model.new(bert(SIZES["tiny"], 40).replace(objectives=objectives))
    sample = {"tokens": np.array([5, 6, 7]), "masked_targets": np.array([8])}
    batch = collate([sample]).with_fields({"masked": torch.tensor([1])})
    loaded = save_and_load(model.eval(), tmp_path / "model", Recipe, batch)
    assert set(loaded.loss(batch).losses) == {"masked_lm", "second.masked_lm"}
