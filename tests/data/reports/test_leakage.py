"""Leakage: planted lines are found, others are not, wherever the borders of blocks and documents fall."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.build import build_corpus
from bertie.data.corpus import Corpus
from bertie.data.reports import leakage as module
from bertie.data.reports.corpus_report import SHOWN_CHARACTERS, report_corpus, with_leakage
from bertie.data.reports.leakage import hash_grams, measure_leakage, read_as_corpus
from bertie.text.vocab.pipelines import build_splitter, build_tokenizer
from bertie.text.vocab.training import train
from bertie.text.vocab.vocab_options import VocabOptions

ENGLISH = ["The old model reads the text.", "It then predicts every single word.", "Nobody knows how it does so."]
CHINESE = ["我们使用语言模型来预测下一个词。", "今天的天气很好我们去公园。", "他们学习中国的历史与文化。"]


@dataclass(frozen=True)
class Row:
    ids: np.ndarray
    sentences: np.ndarray
    words: np.ndarray


class Rows:
    def __init__(self, rows: list[np.ndarray]):
        self.rows = rows
        self.num_documents = len(rows)
        self.lengths = np.array([len(row) for row in rows])

    def document(self, index: int) -> Row:
        ids = self.rows[index].astype(np.uint16)
        return Row(ids, np.zeros(1, np.uint32), np.ones(len(ids), bool))


@pytest.fixture
def corpus() -> Any:
    rng = np.random.default_rng(0)
    return Rows([rng.integers(0, 60_000, 400) for _ in range(50)])


@pytest.mark.parametrize("block", [1 << 20, 900])
def test_planted_lines_are_found(corpus: Any, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(1)
    whole, short, tiny = corpus.rows[3][10:60], corpus.rows[49][393:], corpus.rows[7][:4]
    foreign, changed = rng.integers(0, 60_000, 30), whole.copy()
    changed[25] += 1
    across = np.concatenate([corpus.rows[0][-10:], corpus.rows[1][:10]])
    found = measure_leakage([[line] for line in (foreign, whole, short, tiny, changed, across)], corpus)
    assert found.found_lines == (1, 2)
    assert (found.num_lines, found.num_short, found.num_found_lines) == (6, 1, 2)
    # 13-grams: 18 foreign, 38 of the whole line, 13 new ones where it was changed, 8 across the border.
    assert found.num_grams == 18 + 38 + 13 + 8
    assert found.num_found_grams == 38
    assert found.line_share == pytest.approx(2 / 5)


def test_no_line_no_leakage(corpus: Any) -> None:
    found = measure_leakage([], corpus)
    assert (found.line_share, found.gram_share) == (0, 0)


def test_hashes_tell_order_apart() -> None:
    ids = np.array([1, 2, 3, 1, 2, 3, 3, 2, 1])
    hashes = hash_grams(ids, 3)
    assert len(hashes) == 7
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 6
    assert len(hash_grams(ids, 10)) == 0


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "unigram", "characters", "words"])
def test_copied_sentences_are_found_with_every_kind_of_tokenizer(kind: str, tmp_path: Path) -> None:
    options = VocabOptions(kind=kind, size=400, min_frequency=1)
    splitter = build_splitter(options)
    normalise = splitter.normalizer.normalize_str if splitter.normalizer else str
    lines = [" ".join(ENGLISH), "".join(CHINESE)]
    learned = [lines[0], "zebra quick", " ".join(lines[1])]  # apart, so that no sentence becomes one piece
    pieces = (splitter.pre_tokenizer.pre_tokenize_str(normalise(line)) for line in learned)
    tokenizer = build_tokenizer(options, train(Counter(word for found in pieces for word, _ in found), options).trained)
    (tmp_path / "text.txt").write_text(f"{lines[0]}\n{lines[1]}\n", encoding="utf-8")
    build_corpus(tmp_path / "corpus", [tmp_path / "text.txt"], tokenizer)
    corpus = Corpus.open(tmp_path / "corpus", tokenizer)
    chinese = [] if kind == "words" else CHINESE  # a sentence is one word there, too short to tell
    texts = [
        *ENGLISH,
        " ".join(ENGLISH),
        f" {ENGLISH[0]}  {ENGLISH[1]}\u200b",
        *chinese,
        "".join(CHINESE[:2]) * bool(chinese),
    ]
    texts += ["The zebra reads a quick text. It knows nobody.", "公园使用模型学习天气，历史预测词。"]
    found = measure_leakage(read_as_corpus(texts, corpus, tokenizer), corpus)
    assert found.num_found_lines == (9 if chinese else 5)
    assert found.num_found_grams < found.num_grams or kind == "words"


def test_only_the_beginnings_of_leaked_texts_are_shown(small: Any) -> None:
    text = "unaffable cats sat on the mat." + " " * 2 * SHOWN_CHARACTERS
    report = with_leakage(report_corpus(small.corpus, small.tokenizer), small.corpus, small.tokenizer, [text])
    assert report.leaked_texts == (text[:SHOWN_CHARACTERS] + " …",)
