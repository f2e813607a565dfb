"""A thousand real sentences, spaced and decorated oddly: one tag for every word, and offsets that slice the text."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from tests.tasks.learning import new_model

from bertie.models.answering_rows import answers_of
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.nn.crf import CRFSpec
from bertie.tasks.tagging import Tagging
from bertie.text.tag_schemes import count_broken
from bertie.text.tokenizers.tokenizer import load_tokenizer

SPACES = (" ", " ", " ", "  ", "\t", " \t ", "\u3000", "\u00a0", "\n", " \u2003 ")
DECORATIONS = ("“{}”", '"{}"', "‘{}’,", "({})", "{}😀", "👨‍👩‍👧{}", "{}…", "«{}»!", "{}\u200b", "e\u0301{}")
ALONE = ("😀", "❤️", "\u200b", "\ufeff", "“", "''", "—", "\x07", "中文", "🇫🇷")


def sentences(path: Path, count: int) -> list[list[str]]:
    text = path.read_text(encoding="utf-8")
    parts = (part for part in text.strip().split("\n\n") if not part.startswith("-DOCSTART-"))
    return [[line.split(" ")[0] for line in part.split("\n")] for part in itertools.islice(parts, count)]


def odd_line(words: list[str], rng: random.Random) -> tuple[str, list[str]]:
    """The text, and the words that it consists of."""
    odd = []
    for word in words:
        odd.append(rng.choice(DECORATIONS).format(word) if rng.random() < 0.15 else word)
        if rng.random() < 0.05:
            odd.append(rng.choice(ALONE))
    gaps = [rng.choice(SPACES) for _ in odd]
    return rng.choice(("", " ", "\t")) + "".join(map("".join, zip(odd, gaps, strict=True))), odd


@pytest.mark.parametrize("crf", [None, CRFSpec()], ids=["softmax", "crf"])
def test_a_thousand_sentences(crf: CRFSpec | None, shared: Path) -> None:
    tokenizer = load_tokenizer(shared / "vocab" / "bert-base-cased")
    assert tokenizer is not None
    rng = random.Random(0)
    plain = sentences(shared / "data" / "conll2003" / "test.txt", 1000)
    long = [(list(itertools.chain(*plain[start:])))[:600] for start in (0, 300, 600)]
    given = [odd_line(words, rng) for words in [*plain[:-3], *long]]
    tags = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    task = Tagging(tags=tags, scheme="IOB2", crf=crf)
    recipe = bert(Size(depth=1, width=16, num_heads=2), vocab_size=tokenizer.size)
    model = new_model(task, recipe.changed({"encoder.initial_std": 1.0}))
    examples = [task.read({"words": text}, tokenizer, 128) for text, _ in given]
    assert sum(len(example.samples) > 8 for example in examples) == 3
    num_entities = 0
    for (text, words), (_, answer) in zip(given, answers_of(model, task, examples), strict=True):
        assert "".join(answer["words"]) == "".join(words) and len(answer["words"]) >= len(words)
        assert len(answer["tags"]) == len(answer["words"]) and set(answer["tags"]) <= set(tags)
        assert count_broken(answer["tags"], "IOB2") == 0
        after = 0
        for entity in answer["entities"]:
            num_entities += 1
            assert entity["text"] == text[entity["start"] : entity["end"]]
            inside = answer["words"][entity["first_word"] : entity["end_word"]]
            assert "".join(entity["text"].split()) == "".join(inside) and 0 < entity["score"] <= 1
            assert entity["start"] >= after, "in order, none over another"
            after = entity["end"]
    assert num_entities > 500, "random weights see entities everywhere"
    assert np.mean([len(words) for _, words in given]) > 10
