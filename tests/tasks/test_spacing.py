"""Spaces put back: what is learned of a text, and that no other character is ever touched."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertie.batch import collate
from bertie.errors import InputError
from bertie.models.answering_rows import outputs_of
from bertie.models.folder.folder import hf_layout
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert, bilstm
from bertie.models.task_recipe import task_recipe
from bertie.tasks.reports.mistakes import find_mistakes
from bertie.tasks.spacing import TAGS, Spacing, space_counts, without_spaces
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.vocab.building import characters_of

LINES = ["the cat sat on the mat", "a dog and a cat", "the dog sat", "on and on and on the mat"]
SIZE = Size(depth=2, width=32, num_heads=2)
LENGTH = 16  # shorter than the lines


@cache
def tokenizer() -> PipelineTokenizer:
    return characters_of(LINES)


@cache
def learned() -> Model:
    recipe = bilstm(SIZE, tokenizer().size).changed({"objectives": (Spacing(dropout=0.0),), "encoder.initial_std": 0.1})
    model = Model.new(recipe)
    batch = collate([sample for line in LINES for sample in task().read({"text": line}, tokenizer(), LENGTH).samples])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        loss = model.loss(batch).loss()
        loss.backward()
        optimizer.step()
    return model


def task() -> Spacing:
    return Spacing(dropout=0.0)


def restored(text: str, length: int = LENGTH) -> str:
    example = task().read({"text": text}, tokenizer(), length)
    told: str = task().answer(example, outputs_of(learned(), task(), [example])[0])["text"]
    return told


def test_white_space_of_any_kind_is_taken_away() -> None:
    characters, spaced = without_spaces("  a b\t\u3000c\n")
    assert characters == ["a", "b", "c"] and spaced.tolist() == [1, 1, 0]


def test_a_row_is_read_with_its_spaces_as_gold() -> None:
    example = task().read({"text": " a cat  sat "}, tokenizer(), 64)
    assert example.gold == "a cat sat"
    (sample,) = example.samples
    assert np.asarray(sample["tags"]).tolist() == [1, 0, 0, 1, 0, 0, 0]
    assert len(np.asarray(sample["tokens"])) == 7 + 2
    with pytest.raises(InputError, match="the text is empty"):
        task().read({"text": " \n"}, tokenizer(), 64)


def test_what_was_learned_is_restored_over_several_windows() -> None:
    for line in LINES:
        assert restored(line.replace(" ", "")) == line
    assert len(task().read({"text": LINES[0]}, tokenizer(), LENGTH).samples) > 1


@given(st.text(st.characters(codec="utf-8")))
def test_no_character_is_ever_lost(text: str) -> None:
    if text.split():
        assert "".join(restored(text).split(" ")) == "".join(text.split())


def test_scores_count_spaces() -> None:
    assert space_counts("a bc d", "ab c d").tolist() == [1, 2, 2]
    scores = task().score([{"text": "a bc d"}, {"text": "xy"}], ["ab c d", "x y"])
    assert scores == {"precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5}
    assert task().error_severity({"text": "a bc d"}, "ab c d") == 2.0
    assert task().score([{"text": "x"}], ["x"])["f1"] == 0.0


def test_misspelt_rows_keep_their_spaces() -> None:
    assert task().misspelt({"text": "a  bc d", "id": 3}, lambda word: word + word) == {"text": "aa bcbc dd", "id": 3}


def test_a_draw_is_scored_as_the_task_would() -> None:
    answers, gold = [{"text": "a bc"}, {"text": "ab c"}, {"text": "abc"}], ["a bc", "a b c", "a b c"]
    found = task().resample(answers, gold).score(np.array([0, 2, 2]))
    assert found == task().score([answers[n] for n in (0, 2, 2)], [gold[n] for n in (0, 2, 2)])


def test_mistakes_show_both_texts() -> None:
    examples = [task().read({"text": "a cat"}, tokenizer(), LENGTH)]
    (mistake,) = find_mistakes(task(), examples, [{"text": "ac at"}]).worst
    assert (mistake.gold, mistake.predicted) == ("a cat", "ac at")


def test_it_is_saved_with_its_model_and_opens_elsewhere_as_a_tagger() -> None:
    recipe = task_recipe(bert(SIZE, 100), Spacing())
    assert Recipe.from_json(recipe.to_json()) == recipe and recipe.encoder.pooler is None
    layout, config, _ = hf_layout(recipe)
    assert layout is not None and config["architectures"] == ["BertForTokenClassification"]
    assert list(config["id2label"].values()) == list(TAGS)
