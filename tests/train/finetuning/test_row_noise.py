"""Misspelt rows: which they are, that they differ from epoch to epoch, and that a stopped run ends in the same bits."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from bertie.data.rows import open_rows
from bertie.errors import CapabilityError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify, Pair
from bertie.tasks.examples import Examples
from bertie.tasks.labelled import Labelled
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task, Values
from bertie.text.noise import Noise
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit
from bertie.train.finetuning.row_noise import MisspeltRows, RowNoise
from bertie.train.finetuning.task_data import RowSchedule, TaskData

ALL = Noise(rate=1.0)
TASK = Classify(labels=("no", "yes"))


def labelled(path: Path, rows: list[dict[str, Any]], *roles: str) -> Labelled:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Labelled(open_rows([path]), {role: role for role in roles})


def misspelt(task: Task, values: Values) -> Values:
    return RowNoise(ALL, task, seed=0)(values, 0, 0)


def test_both_texts_of_a_pair_and_nothing_else() -> None:
    values = {"text": "some words", "other": "other words", "label": "some words"}
    found = misspelt(Pair(labels=("a", "b")), values)
    assert found["text"] != values["text"] and found["other"] != values["other"] and found["label"] == "some words"


def test_what_rows_are_told_apart_by_stays() -> None:
    row = {"text": "a question", "other": "an answer", "relevance": 1}
    ranked = misspelt(Rank(), row)
    assert ranked["text"] == row["text"] and ranked["other"] != row["other"]
    chosen = misspelt(Choice(), {"text": "a question", "candidates": ["an answer", "no"], "label": "an answer"})
    assert chosen["text"] != "a question" and chosen["candidates"] == ["an answer", "no"]


@pytest.mark.parametrize("words", ["The cat sat in Rome", ["The", "cat", "sat", "in", "Rome"]])
def test_every_word_keeps_its_tag(words: str | list[str]) -> None:
    found = misspelt(Tagging(marked=True), {"words": words, "tags": list("abcde"), "marked": "cat"})
    assert len(found["words"]) == 5 and found["tags"] == list("abcde")
    assert all(one != other for one, other in zip(found["words"], ["The", "cat", "sat", "in", "Rome"], strict=True))
    assert found["marked"] == [0, 1, 0, 0, 0], "the marked word is no longer found by its name"


def test_characters_with_tags_keep_their_number() -> None:
    task = Tagging()
    task = task.replace(alignment=task.alignment.replace(unit="characters"))
    assert len(misspelt(task, {"words": "我在Rome", "tags": list("abcdef")})["words"]) == 6


def test_places_in_a_text_are_refused() -> None:
    with pytest.raises(CapabilityError, match="rows of the task answer cannot be misspelt"):
        RowNoise(ALL, Answering(), seed=0)


def test_it_depends_on_seed_epoch_and_row_alone() -> None:
    values = {"text": "quite a few words to be misspelt", "label": "yes"}
    found = {
        (seed, epoch, row): RowNoise(Noise(rate=0.5), TASK, seed)(values, epoch, row)["text"]
        for seed in range(2)
        for epoch in range(2)
        for row in range(2)
    }
    assert len(set(found.values())) == 8
    again = RowNoise(Noise(rate=0.5), TASK, 1)
    assert [again(values, 1, row)["text"] for row in (1, 0, 1)] == [found[1, 1, 1], found[1, 1, 0], found[1, 1, 1]]


def test_a_share_of_the_rows_is_misspelt() -> None:
    noise, values = RowNoise(ALL, TASK, seed=0, share=0.5), {"text": "some words", "label": "no"}
    changed = sum(noise(values, 0, row) is not values for row in range(400))
    assert 160 < changed < 240
    assert noise.num_words == noise.num_changed == 2 * changed


def test_what_was_done_is_counted_and_told(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """A word in pieces has more tokens. Rows that were too long before are told elsewhere."""
    texts = ["w1 w2", "w1 w2 w3 w4 w5 w6", "w1 " * 9]
    rows = labelled(tmp_path / "r.jsonl", [{"text": text, "label": "yes"} for text in texts], "text", "label")

    class Longer(RowNoise):
        def __call__(self, values: Values, epoch: int, number: int) -> Values:
            return {**super().__call__(values, epoch, number), "text": values["text"] + " w1"}

    examples = Examples(TASK, rows, tokenizer, 8, "refuse")
    noise = Longer(ALL, TASK, seed=0)
    data = TaskData(RowSchedule(examples, 3, seed=0), examples, None, 1000, change=noise)
    for position in range(2):
        data.instances(data.start._replace(position=position))
        counts = data.take_counts()
        assert counts["rows"] == 3 and counts["cut"] == 1, "of one epoch alone"
    assert not any(data.take_counts().values())
    assert data.describe_counts({"words": 5678, "changed": 1234, "rows": 60, "cut": 12}) == [
        "noise misspelt 1,234 of the 5,678 words of 60 rows, counted in every epoch; "
        "12 of the rows became longer than 8 tokens and were cut"
    ]
    assert data.describe_counts({"words": 9, "changed": 0, "rows": 2, "cut": 0})[0].endswith("in every epoch")
    assert TaskData(RowSchedule(examples, 3, seed=0), examples, None, 1000).describe_counts({}) == []


def test_a_run_that_goes_on_tells_of_all_its_sittings(
    tmp_path: Path,
    tokenizer: Tokenizer,
    recipe: Callable[..., Recipe],
    stopped_after: Callable[[int], AbstractContextManager[None]],
) -> None:
    given = [{"text": f"w1 w{n} w3 w4 w5 w6", "label": "yes" if n % 2 else "no"} for n in range(12)]
    rows = labelled(tmp_path / "r.jsonl", given, "text", "label")
    fields = {"length": 8, "noise": Noise(rate=1, kinds=("space",)), "eval_every": 3}

    def go(folder: Path) -> dict[str, Any]:
        job = PreparedTask.of(fit(Classify(), rows, "refuse"), rows, None, tokenizer, 8, "refuse")
        begun = Pretrained(Model.new(recipe()), tokenizer)
        return finetune(folder, begun, [job], FinetuneOptions.of_epochs([12], 3, 4, fields)).summary

    whole = go(tmp_path / "whole")["notes"]
    with stopped_after(4):
        go(tmp_path / "stopped")
    assert any(re.match(r"noise misspelt [1-9]\d* of the [1-9]\d* words of ", note) for note in whole)
    assert go(tmp_path / "stopped")["notes"] == whole


def test_rows_to_be_measured_on_are_the_same_each_time(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = labelled(tmp_path / "r.jsonl", [{"text": "w1 w2 words", "label": "yes"}] * 3, "text", "label")
    noise = RowNoise(ALL, TASK, seed=0)
    examples = Examples(TASK, MisspeltRows(rows.rows, rows.columns, noise), tokenizer, 16, "refuse")
    texts = [example.values["text"] for example in examples.all()]
    assert all(text != "w1 w2 words" for text in texts)
    examples._cached.cache_clear()
    assert [example.values["text"] for example in examples.all()] == texts


def test_a_step_sees_rows_as_its_epoch_has_them(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """Whatever was read before it: a run that goes on sees what it would have seen."""
    rows = labelled(
        tmp_path / "r.jsonl", [{"text": f"w{n} w{n + 1}", "label": "yes"} for n in range(8)], "text", "label"
    )

    def data() -> TaskData:
        examples = Examples(TASK, rows, tokenizer, 16, "refuse")
        noise = RowNoise(Noise(rate=1, kinds=("drop", "space")), TASK, 3, share=0.5)
        return TaskData(RowSchedule(examples, 8, seed=3), examples, None, 1000, change=noise)

    def step(source: TaskData, position: int) -> list[tuple[int, ...]]:
        place = source.start._replace(position=position)
        return sorted(tuple(row.tolist()) for micro in source.instances(place) for row in micro.ragged("tokens").rows())

    whole = data()
    seen = [step(whole, position) for position in range(3)]
    assert seen[0] != seen[1] != seen[2]
    assert step(data(), 2) == seen[2]
    clean = {tuple(tokenizer.encode(f"w{n} w{n + 1}").ids.tolist()) for n in range(8)}
    assert any(row in clean for row in seen[0]) and any(row not in clean for row in seen[0])
