import functools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.text.segmenters import IDEOGRAPHS, JiebaSegmenter, Segmenter, SpaceSegmenter
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.tokenizers.word_tokens import WordTokenizer, chunk_begins
from bertie.text.vocab.pipelines import Trained, build_splitter, build_tokenizer
from bertie.text.vocab.training import train
from bertie.text.vocab.vocab_options import VocabOptions
from bertie.text.words import chunk

TEXT = "使用语言模型来预测下一个词的probability"
WORDS = (
    "使用 语言 模型 来 预测 下一个 下 一个 词 的 probability model unbelievable 今天 天氣 很 好 ， 。 3D 打印 the is a"
)
SENTENCES = """使用语言模型来预测下一个词的probability。今天天氣很好，the model is unbelievable 。 模型 的 模型
日本のテスト カタカナ 한국어 T恤 卡拉OK 言模型"""
JIEBA = JiebaSegmenter()
PIECES = (
    *WORDS.split(),
    *TEXT,
    " ",
    "  ",
    "\t",
    "\u3000",
    "の",
    "が",
    "한국",
    "\u0301",
    "😀",
    "ﬁ",
    "㎏",
    "𠀀",
    "T恤",
    "<mask>",
)
MIXED = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=2)), min_size=1, max_size=15).map("".join)


@functools.cache
def trained(kind: str, text: str, size: int = 600) -> Tokenizer:
    options = VocabOptions(kind=kind, size=size, min_frequency=1, split_ideographs=False)
    splitter = build_splitter(options)
    normalise = splitter.normalizer.normalize_str if splitter.normalizer else str
    counts = Counter(
        word for line in text.split("\n") for word, _ in splitter.pre_tokenizer.pre_tokenize_str(normalise(line))
    )
    return build_tokenizer(options, train(counts, options).trained)


def units(text: str, tokenizer: Tokenizer, segmenter: Segmenter | None = JIEBA) -> list[str]:
    """The text of each word, by the places of its tokens."""
    found = WordTokenizer(tokenizer, segmenter)([text])
    tokens = tokenizer.encode(text)
    offsets = tokens.offsets[~tokens.special]
    numbers = np.cumsum(found.begins) - 1
    spans = [offsets[numbers == number] for number in range(int(numbers[-1]) + 1)]
    return [text[int(span[:, 0].min()) : int(span[:, 1].max())].strip() for span in spans]


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_words_of_the_segmenter_are_units(kind: str) -> None:
    tokenizer = trained(kind, WORDS.replace(" ", "\n"))
    found = units(TEXT, tokenizer)
    assert {"使用", "语言", "模型", "来", "预测", "词", "的", "probability"} <= set(found)
    assert "".join(found) == TEXT
    assert len(tokenizer.encode_pieces(["使用语言模型"]).ids) < 6  # else nothing would have been joined


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_a_dictionary_and_no_segmenter(kind: str) -> None:
    tokenizer = trained(kind, "\n".join(TEXT))
    assert "语言模型" in units(TEXT, tokenizer, JiebaSegmenter((("语言模型", 100_000),)))
    assert units(TEXT, tokenizer, None) == [*"使用语言模型来预测下一个词的", "probability"]


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_english_words_are_those_of_the_pieces_beside_chinese_ones(kind: str) -> None:
    tokenizer = trained(kind, WORDS.replace(" ", "\n"))
    assert units("the unbelievable 模型 is a model的probability", tokenizer) == [
        *("the", "unbelievable", "模型", "is", "a", "model", "的", "probability"),
    ]
    text = "the unbelievable model is"
    assert units(text, tokenizer) == text.split()


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_a_token_over_a_boundary_joins_the_words_it_touches(kind: str) -> None:
    if kind == "unigram":
        options = VocabOptions(kind=kind)
        pieces = [*options.all_special, "▁", *"使用语言模型来x", "言模"]
        tokenizer: Tokenizer = build_tokenizer(options, Trained(pieces, scores=[-1.0] * len(pieces)))
    else:
        tokenizer = trained(kind, "使\n用\n语\n言模\n型\n来", 300)
    ids = tokenizer.encode_pieces(["使用语言模型来"]).ids
    assert "言模" in [tokenizer.decode([id]) for id in ids]
    assert units("使用语言模型来", tokenizer) == ["使用", "语言模型", "来"]
    assert WordTokenizer(tokenizer, JIEBA)(["使用语言模型来", "x"]).num_joined == 1


def test_parts_of_a_character_stay_together(shared: Path) -> None:
    tokenizer = load_tokenizer(shared / "vocab" / "gpt2")
    assert tokenizer is not None
    found = units(f" {TEXT} and 語言", tokenizer)
    assert found[:4] == ["使用", "语言", "模型", "来"] and found[-3:] == ["probability", "and", "語言"]
    assert len(tokenizer.encode_pieces([TEXT]).ids) > len(TEXT) - 10


@pytest.mark.parametrize("text", ["the unbeliΩvable Ωжß is", "the unbeliΩvable Ωжß is模型"])
def test_an_unknown_piece_belongs_to_its_word(text: str) -> None:
    tokenizer = trained("unigram", WORDS.replace(" ", "\n"))
    assert tokenizer.special.unk in tokenizer.encode_pieces(["Ω"]).ids
    assert units(text, tokenizer)[:4] == ["the", "unbeliΩvable", "Ωжß", "is"]


@pytest.mark.parametrize("characters", [SENTENCES, "aeinou语言"], ids=["all known", "most unknown"])
def test_words_of_single_characters(characters: str) -> None:
    tokenizer = trained("characters", characters)
    assert units(f"{TEXT}, the T恤 2 café", tokenizer) == [
        *("使用", "语言", "模型", "来", "预测", "下", "一个", "词", "的", "probability"),
        *(",", "", "the", "", "T恤", "", "2", "", "café"),
    ]
    assert units("don't stop, 42", tokenizer) == ["don", "'", "t", "", "stop", ",", "", "42"]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=15).map("".join))
def test_single_characters_form_the_words_that_their_tokenizer_knows(text: str) -> None:
    tokenizer = trained("characters", SENTENCES)
    tokens = tokenizer.encode(text)
    expected = np.diff(tokens.words[~tokens.special], prepend=-1) != 0
    assert WordTokenizer(tokenizer, None)([text]).begins.tolist() == expected.tolist()


def edges_of(text: str, segmenter: Segmenter | None) -> tuple[list[tuple[int, int]], set[int]]:
    """Spans of words written with ideographs, and all places where a word or a run begins."""
    spans, edges, place = [], set(), 0
    for part, is_word in chunk(text, segmenter):
        edges.add(place)
        if is_word:
            spans.append((place, place + len(part)))
        else:
            spans += [(place + match.start(), place + match.end()) for match in re.finditer(f"[{IDEOGRAPHS}]", part)]
        place += len(part)
    return spans, edges | {edge for span in spans for edge in span}


BYTES_ALONE = ("byte-bpe", "a", 262)  # so that every ideograph is several tokens
KINDS = (
    *(("byte-bpe", SENTENCES, 600), BYTES_ALONE, ("unigram", SENTENCES, 600), ("wordpiece", SENTENCES, 600)),
    ("characters", SENTENCES, 600),
)


@pytest.mark.parametrize("kind", [*KINDS, ("words", SENTENCES, 600)], ids=lambda kind: f"{kind[0]}-{kind[2]}")
@settings(max_examples=80)
@given(text=MIXED, segmenter=st.sampled_from((JIEBA, SpaceSegmenter(), None)))
def test_words_are_whole_and_apart_unless_a_token_holds_both(
    kind: tuple[str, str, int], text: str, segmenter: Segmenter | None
) -> None:
    tokenizer = trained(*kind)
    found = WordTokenizer(tokenizer, segmenter)([text])
    assert found.ids.tolist() == tokenizer.encode_pieces([text]).ids.tolist() and found.lengths.sum() == len(found.ids)
    if not re.search(f"[{IDEOGRAPHS}]", text):
        return
    tokens = tokenizer.encode(text)
    units = np.cumsum(found.begins)
    letters = np.array([0, *np.cumsum([not re.match(r"[\x00- \xa0\u3000]", letter) for letter in text])])
    starts, ends = letters[tokens.offsets[~tokens.special]].reshape(-1, 2).T
    spans, edges = edges_of(text, segmenter)
    for first, last in spans:
        touching = (starts < letters[last]) & (ends > letters[first])
        assert len(set(units[touching].tolist())) <= 1
    places = {int(letters[edge]) for edge in edges} - {0, int(letters[-1])}
    crossed = {place for place in places if ((starts < place) & (ends > place)).any()}
    assert found.num_joined == len(crossed)
    for place in places - crossed:
        before, after = units[(ends <= place) & (starts < ends)], units[(starts >= place) & (starts < ends)]
        assert not len(before) or not len(after) or before.max() < after.min()


@settings(max_examples=30)
@given(st.lists(MIXED | st.text(max_size=3) | st.just("plain words here"), max_size=6))
def test_many_sentences_are_as_each_alone(sentences: list[str]) -> None:
    for kind in KINDS[::2]:
        tokenise = WordTokenizer(trained(*kind), JIEBA)
        every, alone = tokenise(sentences), [tokenise([sentence]) for sentence in sentences]
        assert every.lengths.tolist() == [len(one.ids) for one in alone]
        assert every.ids.tolist() == [id for one in alone for id in one.ids.tolist()]
        assert every.begins.tolist() == [begins for one in alone for begins in one.begins.tolist()]
        assert every.num_joined == sum(one.num_joined for one in alone)


def test_a_word_chunk_is_one_word_and_a_run_follows_its_pieces() -> None:
    continues = np.array([False, True, False])
    begins = chunk_begins(np.array([3, 2, 0, 1]), np.array([False, True, True, False]), continues[[0, 1, 2, 2, 0, 1]])
    assert begins.tolist() == [True, False, True, True, False, True]
