"""A model describes itself: what it is, how large, what it was trained for, and where it came from."""

from pathlib import Path

import bertie
from bertie.models.filling import LoadReport
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.tasks.classification import Classify

TINY = bert(Size(depth=2, width=16, num_heads=2), 40)


def test_a_folder_shows_its_recipe_size_vocabulary_heads_and_source(pristine: Path) -> None:
    lines = repr(bertie.load(pristine)).splitlines()
    assert lines[0] == "Pretrained model"
    shown = dict(line.split(maxsplit=1) for line in lines[1:])
    assert shown["recipe"] == "bert" and shown["encoder"] == "2 layers of width 32"
    assert "74 pieces, wordpiece" in shown["vocabulary"] and shown["max_length"] == "40 tokens"
    assert shown["heads"] == "masked-lm, next-sentence" and shown["from"] == str(pristine)


def test_a_task_is_shown_with_its_first_labels() -> None:
    task = Classify(labels=tuple(f"label{number}" for number in range(9)))
    text = repr(Pretrained(Model.new(TINY.replace(objectives=(task,)))))
    assert "classify: label0, label1, label2, label3, label4, label5 and 3 more" in text
    assert "no tokenizer" in text and "from" not in text


def test_weights_that_were_not_used_are_shown() -> None:
    model = Pretrained(Model.new(TINY), report=LoadReport(unused=("extra",)))
    assert "1 unused: extra" in repr(model)


def test_a_notebook_shows_a_table_with_escaped_names() -> None:
    model = Pretrained(Model.new(TINY.replace(objectives=(Classify(labels=("<b>", "c")),))), source="a&b")
    html = model._repr_html_()
    assert html.startswith("<table>") and "&lt;b&gt;, c" in html and "a&amp;b" in html
