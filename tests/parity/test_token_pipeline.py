"""Entities of raw text beside the pipeline of `transformers`: the same ones, at the same characters, with the same
scores."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import bertie

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TEXTS = [
    "Ann lives in New York City!!! (Rex) came from London.Paris and Rome, too.",
    'He said: "Bob\'s dog, Rex, ran 3.5 miles to Paris-Nord; well-done!"',
    "ann@rome.it wrote to #paris & @bob ... 50% of U.S. dogs (and cats) sat.",
    "  odd \t spaces,here  and   there !  ",
    "我们去北京。Ann在中文！",
]
WORDS = [
    *("ann", "lives", "in", "new", "york", "city", "rex", "came", "from", "london", "paris", "and", "rome", "too"),
    *("he", "said", "bob", "dog", "ran", "miles", "to", "well", "done", "cats", "sat", "of", "我", "们", "去", "北"),
    *("京", "中", "文", "。", "！", "##s", "##e", "##r", "##o", "##t", "##h", "##d", "##p", "##a", "##c", "##n"),
    *("s", "w", "r", "o", "t", "h", "p", "u", "m", "n", "i", "##i", "##l", "##u", "##m", "3", "5", "50", "##0"),
    *"!\"#$%&'()*+,-./:;<=>?@[]",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model for tokens with the folder that `transformers` writes."""
    made = tmp_path_factory.mktemp("tokens")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(WORDS)]
    (made / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    transformers.BertTokenizer(str(made / "vocab.txt")).save_pretrained(made)
    torch.manual_seed(0)
    names = dict(enumerate(TAGS))
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.5,
        id2label=names,
        label2id={name: number for number, name in names.items()},
    )
    transformers.BertForTokenClassification(config).save_pretrained(made)
    return made


def test_entities_are_those_of_the_pipeline(folder: Path) -> None:
    theirs: Any = transformers.pipeline("token-classification", model=str(folder), aggregation_strategy="first")
    ours = bertie.load(folder).predict(TEXTS)
    num_entities = 0
    for text, answer in zip(TEXTS, ours, strict=True):
        expected = theirs(text)
        found = [(one["type"], one["start"], one["end"]) for one in answer["entities"]]
        assert found == [(one["entity_group"], one["start"], one["end"]) for one in expected], text
        for one, other in zip(answer["entities"], expected, strict=True):
            assert one["score"] == pytest.approx(float(other["score"]), abs=2e-5)
            assert one["text"] == text[one["start"] : one["end"]]
        num_entities += len(found)
    assert num_entities > 20
