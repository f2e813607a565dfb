"""From text to masks, with every kind of tokenizer: words are masked whole, and 15% of the tokens are."""

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.batch import Places
from bertie.data.masking import WholeWords
from bertie.data.samples.frame import Frame
from bertie.data.samples.segments import SegmentSamples
from bertie.data.shapes import Segments
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.objective import Vocabulary
from bertie.text.segmenters import JiebaSegmenter, Segmenter
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.word_tokens import WordTokenizer
from bertie.text.vocab.pipelines import build_splitter, build_tokenizer
from bertie.text.vocab.training import train
from bertie.text.vocab.vocab_options import VocabOptions

SENTENCE = "使用语言模型来预测下一个词的probability"
KNOWN = [
    *("使用", "语言", "模型", "预测", "今天", *"语言模型预测"),
    *("probability", "model", "unbelievable", "unbelievably", "the", "is", "a", "of", "1984"),
]
KINDS = ("wordpiece", "byte-bpe", "unigram", "characters", "words")
JIEBA = JiebaSegmenter()
# Some letters are in no vocabulary, so that there are words with unknown pieces inside.
WORDS = st.one_of(st.sampled_from(KNOWN), st.text("abelnouéßΩж", min_size=1, max_size=12), st.sampled_from(".,!"))


@dataclass(frozen=True)
class OneDocument:
    """A corpus of one document, which is its only one."""

    ids: np.ndarray
    words: np.ndarray
    sentences: np.ndarray
    num_documents: int = 1

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(self.ids)])

    def document(self, index: int) -> "OneDocument":
        return self


@functools.cache
def trained(kind: str) -> Tokenizer:
    options = VocabOptions(kind=kind, size=400, min_frequency=1)
    splitter = build_splitter(options)
    normalise = splitter.normalizer.normalize_str if splitter.normalizer else str
    pieces = (
        splitter.pre_tokenizer.pre_tokenize_str(normalise(f"{before}{word}")) for before in ("", " ") for word in KNOWN
    )
    counts = Counter(word for found in pieces for word, _ in found)
    return build_tokenizer(options, train(counts, options).trained)


def chosen_tokens(text: str, tokenizer: Tokenizer, segmenter: Segmenter, seed: int) -> np.ndarray:
    """[T] bool: the token of the text is to be predicted."""
    found = WordTokenizer(tokenizer, segmenter)([text])
    document = OneDocument(found.ids, found.begins, np.zeros(1, np.uint32))
    frame = Frame.of(tokenizer)
    row = SegmentSamples(Segments(length=4096), document, frame).sample(0, 0, 0)
    vocabulary = Vocabulary(tokenizer.size, tokenizer.special.mask, frozenset(tokenizer.special.ids()))
    masked = MaskedLM(choose=WholeWords()).corrupt(dict(row), vocabulary, np.random.default_rng(seed))["masked"]
    assert isinstance(masked, Places)
    chosen = np.zeros(len(found.ids) + 2, bool)
    chosen[masked.positions] = True
    return chosen[1:-1]


def places(text: str, tokenizer: Tokenizer) -> np.ndarray:
    """[T, 2] where in the text each token stands, without the space that it may carry."""
    tokens = tokenizer.encode(text)
    offsets = tokens.offsets[~tokens.special].tolist()
    return np.array([(end - len(text[start:end].lstrip()), end) for start, end in offsets]).reshape(-1, 2)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(words=st.lists(WORDS, min_size=1, max_size=80), seed=st.integers(0, 2**32))
def test_words_are_masked_whole_at_the_right_rate(kind: str, words: list[str], seed: int) -> None:
    tokenizer, text = trained(kind), " ".join(words)
    ids = tokenizer.encode_pieces([text]).ids
    chosen = chosen_tokens(text, tokenizer, JIEBA, seed)
    eligible = ~np.isin(ids, tokenizer.special.ids())
    starts, ends = places(text, tokenizer).T
    place, longest, num_left = 0, 1, 0
    for word in words:
        own = (starts < place + len(word)) & (ends > place)
        place += len(word) + 1
        assert chosen[own].all() or not chosen[own].any(), word
        if not eligible[own].all():
            assert not chosen[own].any(), word
        elif not chosen[own].any():
            num_left += 1
        longest = max(longest, int(own.sum()) + 1)  # a piece that is a space alone may go with the word
    budget = max(1.0, 0.15 * float(eligible.sum()))
    assert abs(chosen.sum() - budget) < longest or (chosen.sum() < budget and not num_left)


@pytest.mark.parametrize("kind", KINDS[:-1])  # to whole words as pieces the sentence is one word
@pytest.mark.parametrize(
    ("segmenter", "expected"),
    [
        (JIEBA, {"使用", "语言", "模型", "预测", "probability"}),
        (JiebaSegmenter((("语言模型", 100_000),)), {"使用", "语言模型", "预测", "probability"}),
    ],
    ids=["no dictionary", "dictionary"],
)
def test_the_words_of_a_mixed_sentence_are_units(kind: str, segmenter: Segmenter, expected: set[str]) -> None:
    tokenizer = trained(kind)
    offsets = places(SENTENCE, tokenizer)
    masked = set()
    for seed in range(60):
        chosen = chosen_tokens(SENTENCE, tokenizer, segmenter, seed)
        hidden = np.zeros(len(SENTENCE), bool)
        for start, end in offsets[chosen].tolist():
            hidden[start:end] = True
        for word in ("使用", *(("语言模型",) if "语言模型" in expected else ("语言", "模型")), "预测", "probability"):
            begin = SENTENCE.index(word)
            assert hidden[begin : begin + len(word)].all() or not hidden[begin : begin + len(word)].any()
        edges = np.flatnonzero(np.diff(hidden, prepend=False, append=False)).reshape(-1, 2)
        masked |= {SENTENCE[first:last] for first, last in edges.tolist()}
    assert expected <= masked
