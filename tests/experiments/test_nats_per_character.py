"""The same words are masked for every vocabulary, and what they cost is divided by their characters."""

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from experiments.nats_per_character import (
    LONGEST,
    RATE,
    MaskedText,
    cut,
    draw_words,
    main,
    masked_row,
    masked_texts,
    measure,
)

from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert, modernbert
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.train.run import pretrain

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz.,", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
SMALL = Size(depth=1, width=16, num_heads=2)


def tokenizer_of(folder: Path, words: list[str]) -> Tokenizer:
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in [*SPECIAL, *LETTERS, *words]))
    found = load_tokenizer(folder)
    assert found is not None
    return found


@pytest.fixture
def coarse(tmp_path: Path) -> Tokenizer:
    return tokenizer_of(tmp_path / "coarse", ["the", "river", "flows"])


@pytest.fixture
def fine(tmp_path: Path) -> Tokenizer:
    return tokenizer_of(tmp_path / "fine", [])


def test_all_pieces_of_a_drawn_word_are_masked_and_no_others(coarse: Tokenizer, fine: Tokenizer) -> None:
    text = MaskedText("The river, flows.", ((4, 9), (16, 17)))
    for tokenizer, pieces in ((coarse, ["river", "."]), (fine, ["r", "##i", "##v", "##e", "##r", "."])):
        row = masked_row(tokenizer, text)
        masked = np.asarray(row["tokens"]) == tokenizer.special.mask
        assert [tokenizer.token_of(int(id)) for id in np.asarray(row["masked_targets"])] == pieces
        assert masked.sum() == len(pieces)
        assert not masked[0] and not masked[-1]


def test_a_model_that_knows_nothing_pays_the_same_for_every_piece(coarse: Tokenizer, fine: Tokenizer) -> None:
    texts = [MaskedText("The river, flows.", ((4, 9), (16, 17))), MaskedText("flows the", ((0, 5),))]
    for tokenizer, num_pieces in ((coarse, 3), (fine, 11)):
        for recipe in (bert, modernbert):
            model = Model.new(recipe(SMALL, tokenizer.size))
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.zero_()
            score = measure(model, tokenizer, texts)
            assert (score.num_pieces, score.num_characters, score.num_unknown) == (num_pieces, 11, 0)
            assert score.per_character == pytest.approx(num_pieces * math.log(tokenizer.size) / 11, rel=1e-5)


def test_rows_are_of_whole_words_and_none_is_lost() -> None:
    paragraph = " ".join(f"word{number}" for number in range(300))
    rows = cut(paragraph)
    assert " ".join(rows) == paragraph
    assert all(len(row) <= LONGEST for row in rows)
    assert max(map(len, rows)) - min(map(len, rows)) < 20
    assert cut("alone") == cut("") == []
    assert "".join(cut("长江流经中国。" * 100)) == "长江流经中国。" * 100


def test_ideographs_and_marks_are_words() -> None:
    drawn = draw_words("长江 flows, 6300 km" * 20, 0)
    found = {drawn.text[start:end] for start, end in drawn.masked}
    assert found <= {"长", "江", "flows", ",", "6300", "km", "km长"}
    assert drawn == draw_words(drawn.text, 0)
    assert drawn != draw_words(drawn.text, 1)


def test_so_many_words_are_drawn(tmp_path: Path) -> None:
    file = write_text(tmp_path)
    texts = masked_texts(file, 10)
    assert len(texts) == 10
    for text in texts:
        assert len(text.masked) == max(1, round(RATE * len(text.text.replace(".", " .").split())))


def write_text(folder: Path) -> Path:
    file = folder / "held_out.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8") as stream:
        for number in range(30):
            text = "\n".join(["the river flows. the river flows the river."] * (1 + number % 3))
            stream.write(json.dumps({"text": text}) + "\n")
    return file


def test_the_curve_of_a_run(tmp_path: Path, coarse: Tokenizer) -> None:
    from bertie.data.corpus import write_shards
    from bertie.data.shards import CorpusDocument
    from bertie.jobs.text.corpus_jobs import open_corpus
    from bertie.train.budget import Steps
    from bertie.train.learning.optimizer import AdamWSpec
    from bertie.train.pretraining.options import PretrainOptions

    ids = coarse.encode_pieces(["the river flows. the river flows the river."] * 40).ids.astype(np.uint16)
    document = CorpusDocument(ids, np.arange(0, len(ids), 10, dtype=np.uint32), np.ones(len(ids), bool), "one")
    (tmp_path / "coarse").rename(tmp_path / "tokenizer")
    (tmp_path / "corpus").mkdir()
    (tmp_path / "tokenizer").rename(tmp_path / "corpus" / "tokenizer")
    write_shards(tmp_path / "corpus", [document] * 4, coarse)
    corpus, tokenizer = open_corpus(tmp_path / "corpus", None)
    options = PretrainOptions(
        budget=Steps(steps=48),
        length=32,
        batch_tokens=256,
        save_every=6,
        keep=9,
        held_out=0,
        optimizer=AdamWSpec(rate=0.01),
    )
    pretrain(tmp_path / "run", Model.new(modernbert(SMALL, tokenizer.size)), corpus, tokenizer, options)
    main([str(tmp_path / "run"), str(write_text(tmp_path)), "--out", str(tmp_path / "out" / "nats.json")])
    found = json.loads((tmp_path / "out" / "nats.json").read_text())
    tokens, nats = zip(*found["points"], strict=True)
    assert len(nats) == 4
    assert [round(8 * one / tokens[-1]) for one in tokens] == [1, 2, 4, 8]
    assert nats[-1] < 0.7 * nats[0]
    assert nats[-1] == pytest.approx(found["nats"] / found["num_characters"])
