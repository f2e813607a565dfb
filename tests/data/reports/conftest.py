"""A corpus of a few sentences, on disk, with its tokenizer."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bertie.data.corpus import Corpus, write_shards
from bertie.data.shards import CorpusDocument
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("un", "##aff", "##able", "cat", "##s", "sat", "on", "the", "mat", ".", "1984", "语", "言", "模", "型"),
]
DOCUMENTS = (
    ("first", ["unaffable cats sat on the mat.", "the cat sat."]),
    ("second", ["语言模型 1984 xyzzy."]),
    ("<third>", ["cats sat on the mat. the mat sat on cats. unaffable the cat."]),
)


@dataclass(frozen=True)
class SmallCorpus:
    corpus: Corpus
    tokenizer: Tokenizer


def document(name: str, sentences: list[str], tokenizer: Tokenizer) -> CorpusDocument:
    rows = [tokenizer.encode(sentence) for sentence in sentences]
    ids = [row.ids[~row.special] for row in rows]
    words = [np.diff(row.words[~row.special], prepend=-1) != 0 for row in rows]
    starts = np.cumsum([0, *(len(row) for row in ids[:-1])])
    return CorpusDocument(np.concatenate(ids), starts.astype(np.uint32), np.concatenate(words), name)


@pytest.fixture
def small(tmp_path: Path) -> SmallCorpus:
    tokenizer = wordpiece_tokenizer(PIECES)
    rows = [document(name, sentences, tokenizer) for name, sentences in DOCUMENTS]
    corpus = write_shards(tmp_path / "corpus", rows, tokenizer)
    tokenizer.save(tmp_path / "corpus" / "tokenizer")
    return SmallCorpus(corpus, tokenizer)
