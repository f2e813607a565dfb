"""Differences of recipes: found by comparing, never written down."""

from typing import Any

import pytest

from bertie.data.masking import WholeWords
from bertie.inspection.difference import Change, changes, formula
from bertie.models.recipe import SIZES
from bertie.models.recipes import PARENTS, RECIPES, albert, bert, bert_wwm
from bertie.nn.embeddings import TableSpec
from bertie.nn.lstm import LSTMSpec
from bertie.nn.stack import BlockSpec
from bertie.objectives.masked_lm import MaskedLM

TINY = SIZES["tiny"]
PARENT = bert(TINY)


def test_the_formula_of_a_descendant() -> None:
    assert formula(bert(), albert(vocab_size=30_522)) == (
        "albert = bert + tokenizer(unigram) - dropout + factorised(128) + activation(gelu_tanh) "
        "+ shared layers(mixer, feed-forward) + swapped pairs + masks(ngrams) - NSP + SOP"
    )
    assert formula(PARENT, bert_wwm(TINY)) == "bert-wwm = bert + masks(whole-word)"
    assert formula(PARENT, PARENT) == "bert = bert"


@pytest.mark.parametrize("name", PARENTS)
def test_every_recipe_differs_from_its_parent_in_words(name: str) -> None:
    recipe = RECIPES[name](TINY)
    line = formula(RECIPES[PARENTS[name]](TINY, recipe.vocab_size), recipe)
    assert line.startswith(f"{name} = {PARENTS[name]} ")
    assert "encoder." not in line and "objectives." not in line, "a field has no words"


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("tokenizer", "wordpiece", "unigram"),
        ("encoder.embeddings.factor", None, 64),
        ("encoder.stack.block.mixer.num_heads", 2, 4),
        ("encoder.stack.shared", (), ("mixer",)),
        ("encoder.initial_std", 0.02, 0.1),
    ],
)
def test_one_changed_field_is_one_change(field: str, before: Any, after: Any) -> None:
    assert changes(PARENT, PARENT.changed({field: after})) == [Change(field, before, after)]
    assert changes(PARENT, PARENT) == []


def test_another_kind_is_one_change() -> None:
    attention = PARENT.encoder.stack.block.mixer  # type: ignore[union-attr]
    found = changes(PARENT, PARENT.changed({"encoder.stack.block.mixer": LSTMSpec()}))
    assert found == [Change("encoder.stack.block.mixer", attention, LSTMSpec())]
    other = PARENT.changed({"encoder.stack.block": BlockSpec(mixer=LSTMSpec())})
    assert formula(PARENT, other) == "bert = bert + mixer(lstm) - feed-forward"


def test_tables_and_objectives_are_known_by_name() -> None:
    tables = PARENT.encoder.embeddings.tables
    fewer = PARENT.changed({"encoder.embeddings.tables": (tables[0], tables[2])})
    assert changes(PARENT, fewer) == [Change("encoder.embeddings.tables.positions", tables[1], None)]
    named = TableSpec(field="colours", size=3)
    more = PARENT.changed({"encoder.embeddings.tables": (named, *tables)})
    assert changes(PARENT, more) == [Change("encoder.embeddings.tables.colours", None, named)]
    assert formula(PARENT, more) == "bert = bert + encoder.embeddings.tables.colours(table)"
    masked, nsp = PARENT.objectives
    turned = PARENT.replace(objectives=(nsp, masked.replace(choose=WholeWords())))
    (one,) = changes(PARENT, turned)
    assert one == Change("objectives.masked-lm.choose", MaskedLM().choose, WholeWords())
