"""Labelled rows as examples: read once, counted where they are wrong, and the steps that are made of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertie.data.rows import open_rows
from bertie.errors import InputError
from bertie.tasks.classification import Classify
from bertie.tasks.examples import Examples, kind_of
from bertie.tasks.labelled import Labelled
from bertie.tasks.task import Example
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.task_data import RowSchedule, TaskData

TASK = Classify(labels=("no", "yes"))


def labelled(path: Path, rows: list[dict[str, Any]]) -> Labelled:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Labelled(open_rows([path]), {"text": "text", "label": "label"})


def rows(count: int) -> list[dict[str, Any]]:
    return [{"text": f"w{number}", "label": "yes"} for number in range(count)]


def test_examples_know_their_row(tmp_path: Path, tokenizer: Tokenizer) -> None:
    examples = Examples(TASK, labelled(tmp_path / "r.jsonl", rows(3)), tokenizer, 16, "refuse")
    example = examples.example(1)
    assert example is not None
    assert example.values == {"text": "w1", "label": "yes"} and example.where.endswith("r.jsonl:2")
    assert [one.gold for one in examples.all()] == ["yes"] * 3


def test_every_row_is_told_once_and_faults_are_counted_once(tmp_path: Path, tokenizer: Tokenizer) -> None:
    given = [*rows(2), {"text": "", "label": "no"}, {"text": "w1", "label": "maybe"}, {"text": "w1", "label": "never"}]
    told: list[tuple[int, bool]] = []

    def seen(number: int, example: Example | None) -> None:
        told.append((number, example is not None))

    examples = Examples(TASK, labelled(tmp_path / "r.jsonl", given), tokenizer, 16, "skip", seen)
    for _ in range(2):
        assert len(examples.all()) == 2
        examples._cached.cache_clear()
    assert told == [(0, True), (1, True), (2, False), (3, False), (4, False)]
    assert examples.faults.counts.total() == 3
    assert sorted(examples.faults.counts.values()) == [1, 2], "two labels that nobody knows are one kind of fault"
    assert "'maybe'" in str(examples.faults) and "r.jsonl:3" in str(examples.faults)


def test_what_is_cut_is_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    given = [{"text": " ".join(["w1"] * 20), "label": "no"}, *rows(1)]
    examples = Examples(TASK, labelled(tmp_path / "r.jsonl", given), tokenizer, 10, "refuse")
    examples.all()
    assert examples.num_cut == {0: 12}


@pytest.mark.parametrize(
    ("one", "other"),
    [("the label 'a b' is not known", "the label 'c' is not known"), ("there are 3 words", "there are 1,200 words")],
)
def test_mistakes_of_a_kind_have_one_name(one: str, other: str) -> None:
    assert kind_of(InputError(one)) == kind_of(InputError(other)) != kind_of(InputError("the text is empty"))


def test_every_row_comes_once_an_epoch_whatever_the_batch(tmp_path: Path, tokenizer: Tokenizer) -> None:
    examples = Examples(TASK, labelled(tmp_path / "r.jsonl", rows(10)), tokenizer, 16, "refuse")
    data = TaskData(RowSchedule(examples, 5, seed=3), examples, None, 64)
    place, epochs = data.start, []
    for _ in range(2):
        seen = []
        for _ in range(2):
            seen += [tuple(row.tolist()) for micro in data.instances(place) for row in micro.ragged("tokens").rows()]
            place = data.data_schedule.after(place)
        epochs.append(seen)
    assert len(set(epochs[0])) == 10 and set(epochs[0]) == set(epochs[1]) and epochs[0] != epochs[1]


def test_ranks_share_the_rows_of_a_step(tmp_path: Path, tokenizer: Tokenizer) -> None:
    examples = Examples(TASK, labelled(tmp_path / "r.jsonl", rows(10)), tokenizer, 16, "refuse")
    course = RowSchedule(examples, 5, seed=3)

    def tokens(rank: int = 0, num_ranks: int = 1) -> list[tuple[int, ...]]:
        data = TaskData(course, examples, None, 64, rank=rank, num_ranks=num_ranks)
        found = [row for micro in data.instances(data.start) for row in micro.ragged("tokens").rows()]
        return sorted(tuple(row.tolist()) for row in found)

    assert sorted(tokens(rank=0, num_ranks=2) + tokens(rank=1, num_ranks=2)) == tokens()


def test_a_step_without_a_good_row_takes_those_of_the_next(tmp_path: Path, tokenizer: Tokenizer) -> None:
    given = [{"text": "", "label": "no"} for _ in range(6)] + rows(2)
    examples = Examples(TASK, labelled(tmp_path / "r.jsonl", given), tokenizer, 16, "skip")
    data = TaskData(RowSchedule(examples, 1, seed=0), examples, None, 64)
    place = data.start
    for _ in range(8):
        assert sum(len(micro.tensor("label")) for micro in data.instances(place)) == 1
        place = data.data_schedule.after(place)
    none = Examples(TASK, labelled(tmp_path / "n.jsonl", given[:6]), tokenizer, 16, "skip")
    with pytest.raises(InputError, match="no row can be used"):
        TaskData(RowSchedule(none, 2, seed=0), none, None, 64).instances(place)
