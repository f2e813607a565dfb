"""Several tasks on one encoder: how often each comes, what is measured, and that both are learned."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bertie
from bertie.data.rows import open_rows
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.tasks.classification import Classify
from bertie.tasks.labelled import Labelled
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task
from bertie.text.noise import Noise
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit
from bertie.train.finetuning.row_noise import RowNoise
from bertie.train.finetuning.several_tasks import SeveralTasks
from bertie.train.finetuning.task_data import RowSchedule, TaskData


def write(path: Path, rows: list[dict[str, Any]], *roles: str) -> Labelled:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Labelled(open_rows([path]), {role: role for role in roles})


@pytest.fixture
def jobs(tmp_path: Path, tokenizer: Tokenizer) -> list[PreparedTask]:
    texts = [{"text": f"w{5 + n % 7} w{1 + n % 2}", "label": "two" if n % 2 else "one"} for n in range(24)]
    sentences = [{"words": ["w9", f"w{20 + n % 3}", "w8"], "tags": ["O", "B-X", "O"]} for n in range(8)]
    classify = write(tmp_path / "c.jsonl", texts, "text", "label")
    tag = write(tmp_path / "t.jsonl", sentences, "words", "tags")
    pairs: list[tuple[Task, Labelled]] = [(Classify(), classify), (Tagging(), tag)]
    return [PreparedTask.of(fit(task, data, "refuse"), data, data, tokenizer, 16, "refuse") for task, data in pairs]


def data_of(jobs: list[PreparedTask], batch_rows: int, seed: int = 0) -> SeveralTasks:
    parts = []
    for job in jobs:
        parts.append(TaskData(RowSchedule(job.train, batch_rows, seed), job.train, None, 256))
    return SeveralTasks(parts, batch_rows, seed)


def test_tasks_come_as_often_as_their_size_says(jobs: list[PreparedTask]) -> None:
    data = data_of(jobs, 4)
    assert data.steps == [6, 2]
    for epoch in range(3):
        found = [data.which(epoch * 8 + step) for step in range(8)]
        assert Counter(number for number, _ in found) == {0: 6, 1: 2}
        assert sorted(found) == [(0, epoch * 6 + n) for n in range(6)] + [(1, epoch * 2 + n) for n in range(2)]
    orders = [[data.which(epoch * 8 + step)[0] for step in range(8)] for epoch in range(6)]
    assert len(set(map(tuple, orders))) > 1, "each epoch has an order of its own"
    again = data_of(jobs, 4)
    assert orders[0] == [again.which(step)[0] for step in range(8)]


def test_a_step_is_for_one_task_alone(jobs: list[PreparedTask], recipe: Callable[..., Recipe]) -> None:
    data = data_of(jobs, 4)
    model = Model.new(recipe(tuple(job.task for job in jobs)))
    place, seen = data.start, set()
    for _ in range(8):
        for batch in data.instances(place):
            report = model.loss(batch)
            assert len(report.losses) == 1
            seen |= set(report.losses)
        place = data.data_schedule.after(place)
    assert seen == {"classify", "tag"}


def test_noise_is_counted_and_told_of_each_task(jobs: list[PreparedTask]) -> None:
    changes = [RowNoise(Noise(rate=1.0), job.task, seed=0) for job in jobs]
    parts = zip(data_of(jobs, 4).parts, changes, strict=True)
    data = SeveralTasks([replace(part, change=change) for part, change in parts], 4, 0)
    place, counts = data.start, Counter[str]()
    for _ in range(8):
        data.instances(place)
        counts.update(data.take_counts())
        place = data.data_schedule.after(place)
    assert [told.split(",")[0] for told in data.describe_counts(counts)] == [
        "classify: noise misspelt 48 of the 48 words of 24 rows",
        "tag: noise misspelt 24 of the 24 words of 8 rows",
    ]


def test_both_are_learned_and_measured(
    jobs: list[PreparedTask], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    fields = {"optimizer": {"kind": "adamw", "rate": 3e-3}, "length": 16, "seed": 1}
    options = FinetuneOptions.of_epochs([24, 8], 12, 4, fields)
    assert options.budget.steps == 12 * 8
    base = Pretrained(Model.new(recipe()), tokenizer)
    summary = finetune(tmp_path / "run", base, jobs, options).summary
    assert summary["evaluation"]["classify.accuracy"] == 1.0 and summary["evaluation"]["tag.f1"] == 1.0
    assert summary["best"]["rank"] == -1.0
    kinds = [one.kind for one in bertie.load(tmp_path / "run").recipe.objectives]
    assert sorted(kinds) == ["classify", "tag"]


def test_two_tasks_of_one_name_are_refused(
    jobs: list[PreparedTask], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    base = Pretrained(Model.new(recipe()), tokenizer)
    options = FinetuneOptions.of_epochs([24, 24], 1, 4, {"length": 16})
    with pytest.raises(SpecError, match="two tasks have the name 'classify'; give one of them another `name`"):
        finetune(tmp_path / "run", base, [jobs[0], jobs[0]], options)


def test_two_classifiers_with_names_of_their_own_are_learned_together(
    tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    """The second label depends on the other word, so that neither head could do the other's work."""
    words = [(f"w{5 + n % 3}", f"w{1 + n % 2}") for n in range(24)]
    sources = {
        "classify": [{"text": f"{first} {second}", "label": second} for first, second in words],
        "topic": [{"text": f"{first} {second}", "label": first} for first, second in words],
    }
    jobs = []
    for name, rows in sources.items():
        data = write(tmp_path / f"{name}.jsonl", rows, "text", "label")
        jobs.append(PreparedTask.of(fit(Classify(name=name), data, "refuse"), data, data, tokenizer, 16, "refuse"))
    fields = {"optimizer": {"kind": "adamw", "rate": 3e-3}, "length": 16, "seed": 1}
    options = FinetuneOptions.of_epochs([24, 24], 40, 4, fields)
    summary = finetune(tmp_path / "run", Pretrained(Model.new(recipe()), tokenizer), jobs, options).summary
    assert summary["evaluation"]["classify.accuracy"] == 1.0
    assert summary["evaluation"]["topic.accuracy"] == 1.0
    loaded = bertie.load(tmp_path / "run")
    assert sorted(loaded.model.heads) == ["classify", "topic"]
    assert {one.name: one.kind for one in loaded.recipe.objectives} == {"classify": "classify", "topic": "classify"}
